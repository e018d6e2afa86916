import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Calendar, dayOf } from '../../src/metering/calendar.ts';

const ZONES = [
  'UTC',
  'Europe/Berlin',
  'America/New_York',
  'Asia/Kolkata',
  'Pacific/Kiritimati',
  'Pacific/Apia',
  'America/Asuncion',
];

/** The date on the wall, by another way. */
function wall(zone: string, ms: number): string {
  return new Intl.DateTimeFormat('en-CA', { timeZone: zone, year: 'numeric', month: '2-digit', day: '2-digit' }).format(
    ms,
  );
}

describe('the calendar of a zone', () => {
  test('gives the local date, and the end of the month', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...ZONES),
        fc.integer({ min: Date.UTC(2024, 0, 1), max: Date.UTC(2030, 0, 1) }),
        (zone, nowMs) => {
          const { minute, offset, period, periodEndsMs } = new Calendar().at(zone, nowMs);
          expect(dayOf(minute, offset)).toBe(wall(zone, nowMs));
          expect(period).toBe(wall(zone, nowMs).slice(0, 7));
          expect(periodEndsMs).toBeGreaterThan(nowMs);
          expect(wall(zone, periodEndsMs - 1).slice(0, 7)).toBe(period);
          expect(wall(zone, periodEndsMs).slice(0, 7)).not.toBe(period);
        },
      ),
    );
  });

  test.each([
    ['a clock is put back before the month ends', 'Europe/Berlin', '2026-10-10T00:00:00Z', '2026-10-31T23:00:00.000Z'],
    [
      'a clock is put forward before the month ends',
      'America/New_York',
      '2026-03-01T12:00:00Z',
      '2026-04-01T04:00:00.000Z',
    ],
    ['the year ends', 'Asia/Kolkata', '2026-12-15T00:00:00Z', '2026-12-31T18:30:00.000Z'],
    ['the zone is unknown', 'Nowhere/Land', '2026-02-15T00:00:00Z', '2026-03-01T00:00:00.000Z'],
  ])('is right where %s', (_name, zone, now, ends) => {
    expect(new Date(new Calendar().at(zone, Date.parse(now)).periodEndsMs).toISOString()).toBe(ends);
  });

  test('caches a zone only for the current minute', () => {
    const calendar = new Calendar();
    const before = calendar.at('Europe/Berlin', Date.parse('2026-11-30T22:59:59Z'));
    const after = calendar.at('Europe/Berlin', Date.parse('2026-11-30T23:00:00Z'));
    expect([before.period, after.period]).toEqual(['2026-11', '2026-12']);
  });
});
