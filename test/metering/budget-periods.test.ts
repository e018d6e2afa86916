import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { BUDGET_PERIODS, type BudgetPeriod } from '../../src/domain/records.ts';
import { type Period, periodAt } from '../../src/metering/budget-periods.ts';
import { runs } from '../support/properties.ts';

/** With changes of half an hour, changes at midnight that skip it, none, and one that skipped a date. */
const ZONES = [
  ...['UTC', 'Europe/Berlin', 'America/New_York', 'Asia/Kolkata', 'Australia/Lord_Howe', 'America/Santiago'],
  ...['Africa/Cairo', 'Asia/Beirut', 'Atlantic/Azores', 'Pacific/Apia', 'Antarctica/Troll'],
];
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

const CLOCKS = new Map<string, Intl.DateTimeFormat>();

/** The wall clock, by another way than the code under test. */
function wall(zone: string, ms: number): { readonly date: string; readonly hour: string; readonly offset: string } {
  const clock =
    CLOCKS.get(zone) ??
    new Intl.DateTimeFormat('en-CA', {
      ...{ timeZone: zone, year: 'numeric', month: '2-digit', day: '2-digit', hour: '2-digit', hourCycle: 'h23' },
      timeZoneName: 'longOffset',
    });
  CLOCKS.set(zone, clock);
  const parts = new Map(clock.formatToParts(ms).map(({ type, value }) => [type, value]));
  const part = (name: Intl.DateTimeFormatPartTypes): string => parts.get(name) ?? '';
  const offset = part('timeZoneName').replace('GMT', '').replace(':', '') || '+0000';
  return { date: `${part('year')}-${part('month')}-${part('day')}`, hour: part('hour'), offset };
}

/** The Thursday of a week decides its year and its number. */
function isoWeek(date: string): string {
  const day = new Date(`${date}T00:00:00Z`);
  const weekday = (day.getUTCDay() + 6) % 7;
  const thursday = new Date(day.getTime() + (3 - weekday) * 24 * HOUR_MS);
  const firstMs = Date.UTC(thursday.getUTCFullYear(), 0, 1);
  const week = Math.floor((thursday.getTime() - firstMs) / (7 * 24 * HOUR_MS)) + 1;
  return `${thursday.getUTCFullYear()}-W${String(week).padStart(2, '0')}`;
}

/** What two instants of one period have in common, and two of different periods have not. */
function labelOf(period: BudgetPeriod, zone: string, ms: number): string {
  const { date, hour, offset } = wall(zone, ms);
  switch (period) {
    case 'hour':
      return `${date}T${hour}${offset}`;
    case 'day':
      return date;
    case 'week':
      return isoWeek(date);
    case 'month':
      return date.slice(0, 7);
    case 'total':
      return 'total';
    default:
      return period satisfies never;
  }
}

/** The name of a label: an hour has its offset only on a day that is longer or shorter than others. */
function nameOf(period: BudgetPeriod, zone: string, ms: number): string {
  const label = labelOf(period, zone, ms);
  if (period !== 'hour') return label;
  const { date, offset } = wall(zone, ms);
  const quarters = Array.from({ length: 4 * 52 }, (_, i) => wall(zone, ms + (i - 104) * 15 * MINUTE_MS).date);
  return quarters.filter((other) => other === date).length === 4 * 24 ? label.slice(0, -offset.length) : label;
}

function expectBorders({ startsMs, endsMs }: Period, period: BudgetPeriod, zone: string, nowMs: number): void {
  const label = labelOf(period, zone, nowMs);
  if (startsMs === undefined || endsMs === undefined) {
    expect(period).toBe('total');
    return;
  }
  expect([startsMs <= nowMs, nowMs < endsMs]).toEqual([true, true]);
  for (const within of [startsMs, endsMs - 1]) expect(labelOf(period, zone, within)).toBe(label);
  for (const beyond of [startsMs - 1, endsMs]) expect(labelOf(period, zone, beyond)).not.toBe(label);
}

const zones = fc.constantFrom(...ZONES);
const periods = fc.constantFrom(...BUDGET_PERIODS);
/** Near the changes of the clock, the ends of February and the ends of years, and anywhere. */
const instants = fc.oneof(
  fc.integer({ min: Date.UTC(2023, 0, 1), max: Date.UTC(2032, 0, 1) }),
  fc
    .tuple(fc.integer({ min: 2023, max: 2032 }), fc.constantFrom(1, 2, 8, 9, 10, 11), fc.integer({ min: -72, max: 72 }))
    .map(([year, month, quarters]) => Date.UTC(year, month + 1, 1) + quarters * 15 * MINUTE_MS),
);

describe('the period of a budget', () => {
  test('is the one of the wall clock in every zone, from its first to its last millisecond', () => {
    fc.assert(
      fc.property(zones, periods, instants, (zone, period, nowMs) => {
        const found = periodAt(period, zone, nowMs);
        expect(found.name).toBe(nameOf(period, zone, nowMs));
        expectBorders(found, period, zone, nowMs);
        // The next question may be about an earlier instant, because the store's clock may be set back.
        expect(periodAt(period, zone, nowMs)).toEqual(found);
      }),
      { numRuns: runs(2000) },
    );
  });

  test.each([
    ['an hour that occurs twice', 'hour', 'Europe/Berlin', '2026-10-25T00:30:00Z', '2026-10-25T02+0200', 1],
    ['its second occurrence', 'hour', 'Europe/Berlin', '2026-10-25T01:30:00Z', '2026-10-25T02+0100', 1],
    [
      'an hour of which half occurs twice',
      'hour',
      'Australia/Lord_Howe',
      '2026-04-04T15:10:00Z',
      '2026-04-05T01+1030',
      0.5,
    ],
    ['an hour of another day', 'hour', 'Europe/Berlin', '2026-11-26T13:30:00Z', '2026-11-26T14', 1],
    ['an hour of a zone with half an hour', 'hour', 'Asia/Kolkata', '2026-11-26T13:45:00Z', '2026-11-26T19', 1],
    ['a day of 23 hours', 'day', 'Europe/Berlin', '2026-03-29T12:00:00Z', '2026-03-29', 23],
    ['a day of 25 hours', 'day', 'America/New_York', '2026-11-01T12:00:00Z', '2026-11-01', 25],
    ['a day of 24 and a half hours', 'day', 'Australia/Lord_Howe', '2026-04-05T02:00:00Z', '2026-04-05', 24.5],
    ['a day without midnight', 'day', 'America/Santiago', '2026-09-06T12:00:00Z', '2026-09-06', 23],
    ['the leap day', 'day', 'UTC', '2028-02-29T12:00:00Z', '2028-02-29', 24],
    ['a leap February', 'month', 'Asia/Kolkata', '2028-02-10T00:00:00Z', '2028-02', 29 * 24],
    ['another February', 'month', 'Asia/Kolkata', '2026-02-10T00:00:00Z', '2026-02', 28 * 24],
    ['a month of summer and winter time', 'month', 'Europe/Berlin', '2026-10-10T00:00:00Z', '2026-10', 31 * 24 + 1],
    ['the last week of a year with 53', 'week', 'UTC', '2027-01-03T23:59:59Z', '2026-W53', 168],
    ['a first week that begins in the year before', 'week', 'UTC', '2025-12-29T00:00:00Z', '2026-W01', 168],
    ['the week after summer time', 'week', 'Europe/Berlin', '2026-10-25T22:00:00Z', '2026-W43', 169],
    ['an unknown zone', 'day', 'Nowhere/Land', '2026-11-26T23:30:00Z', '2026-11-26', 24],
  ] as const)('is right for %s', (_, period, zone, now, name, hours) => {
    const { name: found, startsMs = 0, endsMs = 0 } = periodAt(period, zone, Date.parse(now));
    expect([found, (endsMs - startsMs) / HOUR_MS]).toEqual([name, hours]);
  });
});
