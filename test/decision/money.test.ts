/** Amounts of money: decimal texts and integers of 10^-9 of the currency. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { formatMoney, parseMoney } from '../../src/domain/money.ts';
import { runs } from '../support/properties.ts';

const nano = fc.bigInt({ min: 0n, max: 10n ** 21n - 1n });

describe('an amount', () => {
  test('is the same after it was written and read', () => {
    fc.assert(
      fc.property(nano, (amount) => {
        expect(parseMoney(formatMoney(amount))).toBe(amount);
        expect(formatMoney(-amount)).toBe(amount === 0n ? '0.00' : `-${formatMoney(amount)}`);
      }),
      { numRuns: runs(2000) },
    );
  });

  test('is written as the shortest text with at least two places', () => {
    fc.assert(
      fc.property(nano, (amount) => {
        const [whole, places = ''] = formatMoney(amount).split('.');
        expect(places.length).toBeGreaterThanOrEqual(2);
        expect(places.length === 2 || !places.endsWith('0')).toBe(true);
        expect(whole).toBe(String(amount / 10n ** 9n));
      }),
      { numRuns: runs(1000) },
    );
  });

  test('of more places is read as exactly, and refused beyond them', () => {
    fc.assert(
      fc.property(fc.nat(), fc.string({ unit: fc.constantFrom('0', '1', '9'), maxLength: 16 }), (whole, places) => {
        const text = places === '' ? String(whole) : `${whole}.${places}`;
        for (const most of [9, 12, 15]) {
          const exact = BigInt(`${whole}${places.padEnd(most, '0')}`);
          expect(parseMoney(text, most)).toBe(places.length > most ? undefined : exact);
        }
      }),
      { numRuns: runs(1000) },
    );
  });

  test.each([
    '',
    '.',
    '1.',
    '.5',
    '01',
    '-1',
    '+1',
    '1e3',
    '1,5',
    ' 1',
    '1 ',
    '0x1',
    '1.0000000001',
    '1000000000000',
    '٣',
  ])('is not read from %j', (text) => {
    expect(parseMoney(text)).toBeUndefined();
  });
});
