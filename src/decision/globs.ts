/**
 * Globs over resource names: `*` is any run of characters, `/` included; everything else stands for itself. Matching takes the
 * leftmost place for each literal piece and never goes back, so its time does not grow with the number of stars.
 */

/** One glob, cut at its stars. */
export interface Glob {
  readonly text: string;
  /** Without stars the name must be equal. */
  readonly exact: boolean;
  readonly prefix: string;
  readonly suffix: string;
  /** What must follow in order between prefix and suffix. */
  readonly middle: readonly string[];
}

export function compileGlob(text: string): Glob {
  const pieces = text.split('*');
  const first = pieces[0] ?? '';
  if (pieces.length === 1) return { text, exact: true, prefix: first, suffix: '', middle: [] };
  const middle = pieces.slice(1, -1).filter((piece) => piece !== '');
  return { text, exact: false, prefix: first, suffix: pieces.at(-1) ?? '', middle };
}

export function globMatches(glob: Glob, name: string): boolean {
  if (glob.exact) return name === glob.prefix;
  const end = name.length - glob.suffix.length;
  let at = glob.prefix.length;
  if (end < at || !name.startsWith(glob.prefix) || !name.endsWith(glob.suffix)) return false;
  for (const piece of glob.middle) {
    const found = name.indexOf(piece, at);
    if (found < 0 || found + piece.length > end) return false;
    at = found + piece.length;
  }
  return true;
}

/**
 * Whether every name that `inner` matches is matched by `outer`. A star of the inner glob is a character that no literal of the
 * outer one contains, so only a star of the outer can take it; and what a star takes may be any text. Hence: match its text.
 */
export function globContains(outer: Glob, inner: Glob): boolean {
  return globMatches(outer, inner.text);
}

/** A list of names and globs: exact names are looked up, globs are tried. */
export interface NameSet {
  /** True when `*` is in the list: every name, and a name that is not known. */
  readonly any: boolean;
  readonly exact: ReadonlySet<string>;
  readonly globs: readonly Glob[];
}

export function compileNames(names: readonly string[]): NameSet {
  const globs = names.filter((name) => name.includes('*')).map(compileGlob);
  return { any: names.includes('*'), exact: new Set(names.filter((name) => !name.includes('*'))), globs };
}

export function namesMatch(set: NameSet, name: string): boolean {
  if (set.any || set.exact.has(name)) return true;
  for (const glob of set.globs) if (globMatches(glob, name)) return true;
  return false;
}
