/**
 * Globs over resource names: `*` matches any run of characters, `/` included. Every other character matches itself.
 * Matching takes the leftmost place for each literal piece and never backtracks, so its time does not grow with the
 * number of stars.
 */

import { compareTexts } from '../domain/text.ts';
import { MAX_GLOB_LENGTH, MAX_RESOURCE_NAME, MAX_STARS, type RuleWork } from './limits.ts';
import { indexOfName, type NameIndex, packPieces } from './name-index.ts';

export interface Glob {
  readonly text: string;
  /** Without stars the name must be equal. */
  readonly exact: boolean;
  readonly prefix: string;
  readonly suffix: string;
  /** The pieces that must follow in order between prefix and suffix. */
  readonly middle: readonly string[];
  /** The pieces for the index of a name. */
  readonly packed: Int32Array;
}

const NO_PIECES = packPieces([]);

export function compileGlob(text: string): Glob {
  const pieces = text.split('*');
  const first = pieces[0] ?? '';
  if (pieces.length === 1) return { text, exact: true, prefix: first, suffix: '', middle: [], packed: NO_PIECES };
  const middle = pieces.slice(1, -1).filter((piece) => piece !== '');
  return { text, exact: false, prefix: first, suffix: pieces.at(-1) ?? '', middle, packed: packPieces(middle) };
}

/** Reports whether the name has the prefix and the suffix, without overlap. */
function endsFit({ prefix, suffix }: Glob, name: string): boolean {
  return prefix.length + suffix.length <= name.length && name.startsWith(prefix) && name.endsWith(suffix);
}

/** Reports whether the pieces occur in order between prefix and suffix, which match. */
function middleFits({ prefix, suffix, middle }: Glob, name: string): boolean {
  const end = name.length - suffix.length;
  let at = prefix.length;
  for (const piece of middle) {
    const found = name.indexOf(piece, at);
    if (found < 0 || found + piece.length > end) return false;
    at = found + piece.length;
  }
  return true;
}

/** An index of the name bounds the time of many globs against one long name. */
export function globMatches(glob: Glob, name: string): boolean {
  if (glob.exact) return name === glob.prefix;
  if (!endsFit(glob, name)) return false;
  if (glob.middle.length === 0) return true;
  const index = indexFor(name);
  return index === undefined ? middleFits(glob, name) : middleFitsIn(index, glob);
}

/**
 * Reports whether `outer` matches every name that `inner` matches. No literal of `outer` contains a star, so only a
 * star of `outer` can match a star of `inner`, and that star matches any text. It is therefore enough to match the text
 * of `inner`.
 */
export function globContains(outer: Glob, inner: Glob): boolean {
  if (outer.exact) return inner.text === outer.prefix;
  return endsFit(outer, inner.text) && middleFits(outer, inner.text);
}

/**
 * Reports whether a name may match both patterns, by their beginnings and ends. True is right for any two; false is
 * exact.
 */
export function mayMeet(one: string, other: string): boolean {
  return endsMayMeet(endsOf(one), endsOf(other));
}

/** The beginning and the end of a pattern. */
export interface PatternEnds {
  readonly exact: boolean;
  readonly head: string;
  readonly tail: string;
}

/** Like `mayMeet`, for patterns that are compared with many others. */
export function endsMayMeet(a: PatternEnds, b: PatternEnds): boolean {
  if (a.exact && b.exact) return a.head === b.head;
  const begins = a.head.startsWith(b.head) || b.head.startsWith(a.head);
  return begins && (a.tail.endsWith(b.tail) || b.tail.endsWith(a.tail));
}

export function endsOf(pattern: string): PatternEnds {
  const star = pattern.indexOf('*');
  if (star < 0) return { exact: true, head: pattern, tail: pattern };
  return { exact: false, head: pattern.slice(0, star), tail: pattern.slice(pattern.lastIndexOf('*') + 1) };
}

/** Reports whether a text is within the bounds of a name or glob. Stored texts may be older than the bounds. */
export function isWithinBounds(text: string): boolean {
  const isShort =
    text.length <= MAX_GLOB_LENGTH || (text.length <= 2 * MAX_GLOB_LENGTH && [...text].length <= MAX_GLOB_LENGTH);
  return isShort && text.split('*').length <= MAX_STARS + 1;
}

/**
 * A list of names and globs: exact names are looked up, prefixes are found by bisection, and all other globs are tried.
 */
export interface NameSet {
  /** True when `*` is in the list: every name, and a name that is not known. */
  readonly any: boolean;
  readonly exact: ReadonlySet<string>;
  /** The same names as a list, which is faster to iterate. */
  readonly exactNames: readonly string[];
  /** The prefixes of globs whose only star is the last character, sorted; none begins with another. */
  readonly prefixes: readonly string[];
  readonly globs: readonly Glob[];
}

/**
 * How a list treats a glob beyond the bounds, which only an older version can have stored. A deny reduces it to its
 * beginning and its end, so it denies at least as much as before. A grant and an allow leave it out, so they permit at
 * most as much.
 */
type Oversized = 'widen' | 'leave out';

function bounded(text: string, oversized: Oversized): string | undefined {
  // A name without stars is looked up at any length.
  const star = text.indexOf('*');
  if (star < 0 || isWithinBounds(text)) return text;
  return oversized === 'widen' ? `${text.slice(0, star)}*${text.slice(text.lastIndexOf('*') + 1)}` : undefined;
}

/** Returns the texts in order, without those that begin with another one. */
function shortestPrefixes(texts: readonly string[]): readonly string[] {
  const kept: string[] = [];
  for (const text of texts.toSorted(compareTexts)) {
    const last = kept.at(-1);
    if (last === undefined || !text.startsWith(last)) kept.push(text);
  }
  return kept;
}

export function compileNames(names: readonly string[], oversized: Oversized): NameSet {
  const exact = new Set<string>();
  const prefixes: string[] = [];
  const globs: Glob[] = [];
  for (const name of names) {
    const text = bounded(name, oversized);
    if (text === undefined) continue;
    const star = text.indexOf('*');
    if (star < 0) exact.add(text);
    else if (star === text.length - 1) prefixes.push(text.slice(0, star));
    else globs.push(compileGlob(text));
  }
  return { any: names.includes('*'), exact, exactNames: [...exact], prefixes: shortestPrefixes(prefixes), globs };
}

/** The largest number of prefixes that are tried one after the other. */
const FEW_PREFIXES = 6;

/**
 * Among many prefixes, only the last one that sorts up to the name can match: a prefix between the two would begin with
 * it.
 */
function hasPrefix(prefixes: readonly string[], name: string): boolean {
  if (prefixes.length <= FEW_PREFIXES) {
    for (const prefix of prefixes) if (name.startsWith(prefix)) return true;
    return false;
  }
  let low = 0;
  let high = prefixes.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((prefixes[middle] ?? '') <= name) low = middle + 1;
    else high = middle;
  }
  const last = prefixes[low - 1];
  return last !== undefined && name.startsWith(last);
}

/**
 * Names up to this length, in characters, are searched as they are: for longer ones an index is cheaper in the worst
 * case.
 */
const SEARCHED_LENGTH = 32;

/** Whether the middle of one glob, whose ends fit, is in a name that has an index. */
function middleFitsIn(index: NameIndex, glob: Glob): boolean {
  const { name } = index;
  return index.mayHold(glob.packed, glob.prefix.length, name.length - glob.suffix.length) && middleFits(glob, name);
}

/**
 * The index of a name that is too long to be searched. Its making is no work: one decision makes each once, and names
 * few.
 */
function indexFor(name: string): NameIndex | undefined {
  return name.length <= SEARCHED_LENGTH || name.length > MAX_RESOURCE_NAME ? undefined : indexOfName(name);
}

/**
 * The work of looking a name up in a list, and of comparing its ends with those of one glob; a piece between them is
 * one.
 */
const LIST_WORK = 3;
const GLOB_WORK = 2;
/** The work of turning to the index of another name, which is rarely in the processor's cache. */
const INDEX_WORK = 8;

function someGlobMatches(globs: readonly Glob[], name: string, work: RuleWork): boolean {
  let index: NameIndex | undefined;
  for (const glob of globs) {
    work.left -= GLOB_WORK + glob.middle.length;
    if (work.left < 0) return false;
    if (!endsFit(glob, name)) continue;
    if (glob.middle.length === 0) return true;
    if (index === undefined) {
      index = indexFor(name);
      work.left -= index === undefined ? name.length >> 2 : INDEX_WORK;
    }
    if (index === undefined ? middleFits(glob, name) : middleFitsIn(index, glob)) return true;
  }
  return false;
}

/**
 * Reports whether the list has the name.
 * @param work what the decision may still spend; once it is spent the answer is false and the decision must be a denial
 */
export function namesMatch(set: NameSet, name: string, work: RuleWork): boolean {
  work.left -= LIST_WORK;
  if (work.left < 0) return false;
  if (set.any || set.exact.has(name) || hasPrefix(set.prefixes, name)) return true;
  return set.globs.length > 0 && someGlobMatches(set.globs, name, work);
}
