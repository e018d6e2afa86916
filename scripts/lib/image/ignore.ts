/**
 * The part of .dockerignore that this project uses: paths and `*` for everything, `!` to take back; the last match
 * decides.
 */

export interface Ignore {
  /** @param path from the context's folder, with slashes */
  excludes(path: string): boolean;
}

export function readIgnore(text: string): Ignore {
  const rules = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => ({ path: line.replace(/^!/, ''), excluded: !line.startsWith('!') }));
  const odd = rules.find(({ path }) => path !== '*' && /[*?[]/.test(path));
  if (odd !== undefined) throw new Error(`.dockerignore: ${odd.path} is a pattern that this reader does not know`);
  return {
    excludes: (path) =>
      rules.findLast((rule) => rule.path === '*' || path === rule.path || path.startsWith(`${rule.path}/`))?.excluded ??
      false,
  };
}
