import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { makeId } from '../../src/domain/ids.ts';
import { BUDGET_PERIODS, BUDGET_UNITS } from '../../src/domain/records.ts';
import { counterName, periodAt } from '../../src/metering/budget-periods.ts';
import { chargeText, MAX_CHARGES_TEXT, readCharges } from '../../src/metering/charge-text.ts';
import { runs } from '../support/properties.ts';

const amount = fc.oneof(fc.nat({ max: 3 }), fc.nat(), fc.maxSafeNat());
const prices = fc.record({
  ...{ version: fc.integer({ min: 1, max: 2 ** 31 - 1 }), input: amount, output: amount },
  ...{ cachedInput: amount, cacheWrite: amount },
});
const random = fc.uint8Array({ minLength: 10, maxLength: 10 });
const charges = fc
  .record({
    unit: fc.constantFrom(...BUDGET_UNITS),
    period: fc.constantFrom(...BUDGET_PERIODS),
    zone: fc.constantFrom('UTC', 'Europe/Berlin', 'Australia/Lord_Howe'),
    share: fc.constantFrom('', 'key', 'usr'),
    nowMs: fc.integer({ min: 0, max: Date.UTC(2100, 0, 1) }),
    epoch: fc.nat(),
    random,
  })
  .map(({ unit, period, zone, share, nowMs, epoch, random: digits }) => {
    const id = makeId('bud', nowMs, digits);
    const caller = share === 'key' ? makeId('key', nowMs, digits) : share === 'usr' ? makeId('usr', nowMs, digits) : '';
    return { unit, period: counterName({ id, epoch }, caller, periodAt(period, zone, nowMs)) };
  });

describe('the text of charges', () => {
  test('gives every price and every list of budgets back, as ASCII within its bound', () => {
    fc.assert(
      fc.property(fc.option(prices, { nil: undefined }), fc.array(charges, { maxLength: 16 }), (price, list) => {
        const text = chargeText({ price, charges: list });
        if (text === undefined) {
          expect([price, list]).toEqual([undefined, []]);
          return;
        }
        expect(text).toMatch(/^[\x20-\x7e]+$/);
        expect(text.length).toBeLessThanOrEqual(MAX_CHARGES_TEXT);
        expect(readCharges(text)).toEqual({ price, charges: list });
      }),
      { numRuns: runs(1000) },
    );
  });

  test('is refused if any part of it is malformed, and never throws', () => {
    const valid = 'p1,2,3,4,5;tbud_00000000000000000000000000 2026-11#0';
    expect(readCharges(valid)).toBeDefined();
    const malformed = [
      ...[
        '',
        ';',
        'p',
        'p1,2,3,4',
        'p1,2,3,4,5,6',
        'p1,2,3,4,-5',
        `${valid};`,
        `${valid};x`,
        `x${valid}`,
        `${valid}\n`,
      ],
      ...['p9999999999,9999999999999999,3,4,5', valid.replace(' ', ''), valid.replace('#0', ''), valid.repeat(200)],
      ...[valid.replace('tbud', 'xbud'), Array(65).fill('tbud_00000000000000000000000000 total#0').join(';')],
    ];
    for (const text of malformed) expect(readCharges(text), text.slice(0, 80)).toBeUndefined();
    fc.assert(
      fc.property(fc.string({ maxLength: 100 }), fc.nat({ max: valid.length }), (text, at) => {
        for (const read of [text, valid.slice(0, at) + text].map(readCharges))
          if (read !== undefined) expect(readCharges(chargeText(read) ?? '')).toEqual(read);
      }),
      { numRuns: runs(1000) },
    );
  });
});
