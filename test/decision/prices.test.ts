/** Prices of models: the cost of a request is exact, and the most specific glob counts. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { compilePrices, costOf, type Price, type PricedTokens } from '../../src/decision/prices.ts';
import { compareSpecificity, MostSpecific } from '../../src/decision/specificity.ts';
import { runs } from '../support/properties.ts';
import { tableMatches } from './naive-glob.ts';

const price = (members: Partial<Price> = {}): Price => ({
  version: 1,
  input: 1_000_000,
  output: 2_000_000,
  cachedInput: 100_000,
  cacheWrite: 1_250_000,
  ...members,
});

/** Prices each token by itself, and rounds the sum of millionths up. */
function naiveCost(of: Price, { prompt, completion, cached, cacheWrite, total }: Required<PricedTokens>): bigint {
  let millionths = 0n;
  for (let token = 0; token < prompt; token++) {
    const kind = token < cached ? of.cachedInput : token < cached + cacheWrite ? of.cacheWrite : of.input;
    millionths += BigInt(kind);
  }
  for (let token = 0; token < completion; token++) millionths += BigInt(of.output);
  for (let token = prompt + completion; token < total; token++) millionths += BigInt(of.input);
  const whole = millionths / 1_000_000n;
  return whole * 1_000_000n === millionths ? whole : whole + 1n;
}

const amount = fc.oneof(fc.nat(3_000_000), fc.maxSafeNat());
const few = fc.nat(60);

describe('the cost of a request', () => {
  test('is the sum of the prices of its tokens, rounded up to 10^-9 once', () => {
    fc.assert(
      fc.property(
        fc.record({ input: amount, output: amount, cachedInput: amount, cacheWrite: amount }),
        fc.record({ prompt: few, completion: few, cached: few, cacheWrite: few, total: fc.nat(200) }),
        (amounts, tokens) => {
          const expected = naiveCost(price(amounts), tokens);
          const most = BigInt(Number.MAX_SAFE_INTEGER);
          expect(BigInt(costOf(price(amounts), tokens))).toBe(expected > most ? most : expected);
        },
      ),
      { numRuns: runs(2000) },
    );
  });

  test('is exact for every price and every number of tokens', () => {
    const many = fc.oneof(fc.nat(100_000), fc.nat(), fc.maxSafeNat());
    fc.assert(
      fc.property(amount, amount, many, many, (input, output, prompt, completion) => {
        const millionths = BigInt(prompt) * BigInt(input) + BigInt(completion) * BigInt(output);
        const [cost, most] = [(millionths + 999_999n) / 1_000_000n, BigInt(Number.MAX_SAFE_INTEGER)];
        expect(BigInt(costOf(price({ input, output }), { prompt, completion }))).toBe(cost > most ? most : cost);
      }),
      { numRuns: runs(2000) },
    );
  });

  test('of many tokens is exact where floating point is not', () => {
    const tokens = { prompt: 0, completion: 9_007_199_254, cached: 0, cacheWrite: 0, total: 9_007_199_254 };
    expect(costOf(price({ output: 999_999 }), tokens)).toBe(9_007_190_247);
  });

  test('counts tokens of the cache at the price of input if the list has no other', () => {
    const [rule] = [{ models: 'm', input: 3_000_000, output: 0, cachedInput: undefined, cacheWrite: undefined }];
    const of = compilePrices({ version: 7, prices: [rule] }).of('m');
    expect(of).toEqual({ version: 7, input: 3_000_000, output: 0, cachedInput: 3_000_000, cacheWrite: 3_000_000 });
  });
});

const glob = fc.string({ unit: fc.constantFrom('a', 'b', '*'), minLength: 1, maxLength: 5 });
const name = fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 5 });

describe('the most specific glob', () => {
  /** Removes every glob that another matching one beats, by the rules of the documentation. */
  function naiveFind(globs: readonly string[], asked: string): number | undefined {
    const matching = [...globs.keys()].filter((i) => tableMatches(globs[i] ?? '', asked));
    const stars = (i: number) => (globs[i] ?? '').replaceAll(/[^*]/g, '').length;
    const keep = (candidates: number[], rank: (i: number) => number) =>
      candidates.filter((i) => rank(i) === Math.max(...candidates.map(rank)));
    const exact = matching.filter((i) => stars(i) === 0);
    if (exact.length > 0) return exact[0];
    const longest = keep(matching, (i) => (globs[i] ?? '').length - stars(i));
    const fewest = keep(longest, (i) => -stars(i));
    return fewest.sort((i, j) => ((globs[i] ?? '') < (globs[j] ?? '') ? -1 : i - j))[0];
  }

  test('is the name itself, then the one with the most characters besides stars, then the one with the fewest stars', () => {
    fc.assert(
      fc.property(fc.array(glob, { maxLength: 12 }), name, (globs, asked) => {
        const found = new MostSpecific(globs.map((text, i) => [text, i] as const)).find(asked);
        const expected = naiveFind(globs, asked);
        expect(found === undefined ? undefined : globs[found]).toBe(
          expected === undefined ? undefined : globs[expected],
        );
      }),
      { numRuns: runs(3000) },
    );
  });

  test('does not depend on the order of the list', () => {
    fc.assert(
      fc.property(fc.uniqueArray(glob, { maxLength: 8 }), name, (globs, asked) => {
        const find = (list: readonly string[]) =>
          new MostSpecific(list.map((text) => [text, text] as const)).find(asked);
        expect(find(globs.toReversed())).toBe(find(globs));
      }),
      { numRuns: runs(1000) },
    );
  });

  test('has an order in which two different globs are never equal', () => {
    fc.assert(
      fc.property(glob, glob, (a, b) => {
        expect(Math.sign(compareSpecificity(a, b))).toBe(-Math.sign(compareSpecificity(b, a)) + 0);
        expect(compareSpecificity(a, b) === 0).toBe(a === b);
      }),
      { numRuns: runs(1000) },
    );
  });
});
