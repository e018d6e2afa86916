import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fractionOf, percentOf } from '../../console/src/screens/budget/percent.ts';
import { forecastOf } from '../../console/src/screens/spend/forecast.ts';
import { timeIn } from '../../console/src/screens/usage/month.ts';
import { money } from '../../console/src/ui/money.ts';

describe('an amount of money on a screen', () => {
  it.each([
    ['12.5', 'USD', '$12.50'],
    ['0', 'USD', '$0.00'],
    ['0.00123456', 'USD', '$0.00123'],
    ['0.000000001', 'USD', '$0.000000001'],
    ['0.01234', 'USD', '$0.0123'],
    ['0.5', 'EUR', '€0.50'],
    // A double holds no such number.
    ['9007199254740993.25', 'USD', '$9,007,199,254,740,993.25'],
    ['1234.5', undefined, '1,234.50'],
    ['not a number', 'USD', 'not a number'],
  ])('%s %s is %s', (amount, currency, shown) => {
    expect(money(amount, currency)).toBe(shown);
  });
});

describe('a threshold of an alert', () => {
  it('is the same fraction after it was shown in percent', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1_000_000 }), (n) => {
        const fraction = n / 100_000;
        expect(fractionOf(percentOf(fraction))).toBe(fraction);
      }),
    );
    expect([0.8, 0.07, 1, 0.955].map(percentOf)).toEqual(['80', '7', '100', '95.5']);
  });
});

describe('the forecast of a month', () => {
  const leapFebruary = { from: '2028-02-01', to: '2028-02-29' };
  const at = (time: string) => forecastOf(30, leapFebruary, Date.parse(time));

  it('divides the spend by the elapsed part, counting the days that the month has', () => {
    expect(at('2028-02-15T12:00:00Z')).toBe('60.00');
    expect(at('2028-02-29T23:59:59Z')).toBe('30.00');
  });

  it('counts the days of the clock that the usage was booked by', () => {
    const now = (zone: string) => timeIn(zone, Date.parse('2028-02-14T18:00:00Z'));
    const inZone = (zone: string) => forecastOf(30, leapFebruary, now(zone));
    expect([inZone('Pacific/Kiritimati'), inZone('Etc/GMT+6')]).toEqual(['60.70', '64.44']);
    expect(new Date(timeIn('Pacific/Kiritimati', Date.parse('2028-02-29T10:00:05Z'))).toISOString()).toBe(
      '2028-03-01T00:00:05.000Z',
    );
  });

  it('does not exist in the first day and after the month', () => {
    expect([at('2028-02-01T23:00:00Z'), at('2028-03-01T00:00:00Z')]).toEqual([undefined, undefined]);
  });
});
