/** How many cases a property test tries: all of them where time allows, a tenth of them on a developer's machine. */

import fc from 'fast-check';

/** Continuous integration tries every case. `TEST_PROPERTIES=full` does so anywhere. */
const IS_FULL = (process.env['TEST_PROPERTIES'] ?? (process.env['CI'] === 'true' ? 'full' : 'bounded')) === 'full';
const BOUNDED_SHARE = 0.1;
const LEAST_RUNS = 5;
const BOUNDED_ROUNDS = 2;
const BOUNDED_PARTS = 3;

/** Returns how many cases to try of `full`, a number that suffices to find a fault with near certainty. */
export function runs(full: number): number {
  return IS_FULL ? full : Math.min(full, Math.max(LEAST_RUNS, Math.ceil(full * BOUNDED_SHARE)));
}

/** Returns how often to repeat something that takes seconds, for example to kill a server at a random moment. */
export function rounds(full: number): number {
  return IS_FULL ? full : Math.min(full, BOUNDED_ROUNDS);
}

/**
 * Returns the items that a test of each item with each of several other things tries for one of these: all, or every third. The thirds of
 * consecutive numbers differ, so each item is tried also in a bounded run.
 */
export function share<T>(items: readonly T[], number: number): readonly T[] {
  return IS_FULL ? items : items.filter((_, i) => (i + number) % BOUNDED_PARTS === 0);
}

/**
 * Returns how many of its cases a property test of full size must have seen to prove anything. A bounded run is too
 * small to distinguish a generator that never makes such a case from chance, so it returns 0 there.
 */
export function enough(cases: number): number {
  return IS_FULL ? cases : 0;
}

/** The seed of every random choice in the run; undefined = each property test draws its own. */
export const SEED = process.env['TEST_SEED'] === undefined ? undefined : Number(process.env['TEST_SEED']);

const SURROGATES = { first: 0xd8_00, count: 0x8_00 };

/**
 * Every code point except half of a surrogate pair, as the unit of `fc.string`. The unit `binary` of fast-check makes the same, and
 * each string of it takes up to 2 s to build a table of them all.
 */
export const anyCharacter = fc.nat({ max: 0x10_ff_ff - SURROGATES.count }).map(
  (n) => String.fromCodePoint(n < SURROGATES.first ? n : n + SURROGATES.count),
  (text) => {
    const code = typeof text === 'string' ? text.codePointAt(0) : undefined;
    if (code === undefined || text !== String.fromCodePoint(code)) throw new Error('This is not one character.');
    return code < SURROGATES.first ? code : code - SURROGATES.count;
  },
);
