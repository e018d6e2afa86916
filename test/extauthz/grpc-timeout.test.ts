import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readTimeout } from '../../src/extauthz/grpc/timeout.ts';
import { runs } from '../support/properties.ts';

const UNIT_MS: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1000, m: 1, u: 1e-3, n: 1e-6 };

/** The grammar of PROTOCOL-HTTP2.md as a regular expression. */
function naive(text: string): number | undefined {
  const [, digits = '', unit = ''] = /^([0-9]{1,8})([HMSmun])$/.exec(text) ?? [];
  const unitMs = UNIT_MS[unit];
  return unitMs === undefined ? undefined : Number(digits) * unitMs;
}

const timeout = fc.oneof(
  fc.tuple(fc.stringMatching(/^[0-9]{0,10}$/), fc.constantFrom(...'HMSmunhsN x', '')).map((parts) => parts.join('')),
  fc
    .tuple(fc.constantFrom('-', '+', ' ', '.', '0x', ''), fc.nat(), fc.constantFrom('m', 'S', ' m'))
    .map((parts) => parts.join('')),
  fc.string({ maxLength: 10 }),
);

describe('grpc-timeout', () => {
  test('is read as the grammar of the protocol has it, and everything else counts as absent', () => {
    fc.assert(
      fc.property(timeout, (text) => {
        const read = readTimeout(text);
        const expected = naive(text);
        if (expected === undefined) expect(read).toBeUndefined();
        else expect(read).toBeCloseTo(expected, 6);
      }),
      { numRuns: runs(2000) },
    );
    expect(readTimeout(undefined)).toBeUndefined();
  });

  test.each([
    ['500m', 500],
    ['1S', 1000],
    ['0m', 0],
    ['99999999H', 99_999_999 * 3_600_000],
    ['100000000m', undefined],
    ['m', undefined],
    ['', undefined],
    ['500m, 500m', undefined],
    ['５m', undefined],
  ])('%j is %s ms', (text, expected) => {
    expect(readTimeout(text)).toBe(expected);
  });
});
