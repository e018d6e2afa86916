/** The order in which globs on models win. */

import { compareTexts } from '../domain/text.ts';
import { compileGlob, type Glob, globMatches } from './globs.ts';

/**
 * Compares two globs: a name without stars is more specific than a glob, then the one with more characters besides its
 * stars, then the one with fewer stars, then the earlier text. Returns a negative number if `a` is more specific.
 */
export function compareSpecificity(a: string, b: string): number {
  const [starsOfA, starsOfB] = [starsIn(a), starsIn(b)];
  if ((starsOfA === 0) !== (starsOfB === 0)) return starsOfA - starsOfB;
  const literals = b.length - starsOfB - (a.length - starsOfA);
  return literals || starsOfA - starsOfB || compareTexts(a, b);
}

function starsIn(glob: string): number {
  return glob.split('*').length - 1;
}

interface Rule<T> {
  readonly glob: Glob;
  readonly value: T;
}

export class MostSpecific<T> {
  readonly #exact = new Map<string, T>();
  readonly #globs: readonly Rule<T>[];

  /** Of several values for one glob, the first counts. */
  constructor(entries: Iterable<readonly [glob: string, value: T]>) {
    const rules: Rule<T>[] = [];
    for (const [text, value] of entries) {
      const glob = compileGlob(text);
      if (!glob.exact) rules.push({ glob, value });
      else if (!this.#exact.has(text)) this.#exact.set(text, value);
    }
    this.#globs = rules.sort((a, b) => compareSpecificity(a.glob.text, b.glob.text));
  }

  /** Returns the value of the most specific glob that matches the name; undefined = none. */
  find(name: string): T | undefined {
    const exact = this.#exact.get(name);
    return exact ?? this.#globs.find(({ glob }) => globMatches(glob, name))?.value;
  }
}
