import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { PolicyConditions } from '../../src/decision/condition-table.ts';
import { compileConditions, conditionInputs, conditionsHold } from '../../src/decision/conditions.ts';
import { DAY_NAMES } from '../../src/domain/records.ts';
import { naiveWall } from './naive-wall.ts';

const HOUR_MS = 3_600_000;

/** Whether a policy with these hours is in force at an instant. */
function inForce(
  windows: readonly string[],
  time: string,
  timezone?: string,
  operator: 'in' | 'not_in' = 'in',
): boolean {
  const conditions: PolicyConditions = {
    weekly_hours: { [operator]: windows },
    ...(timezone === undefined ? {} : { timezone }),
  };
  return conditionsHold(
    compileConditions(conditions),
    'allow',
    conditionInputs(Date.parse(time), undefined, undefined),
  );
}

/** Days of `Fri-Mon`, by walking the week from the first to the last. */
function naiveDays(text: string): readonly number[] {
  const [first = '', last = first] = text.split('-');
  const names: readonly string[] = DAY_NAMES;
  const days = [names.indexOf(first)];
  while (DAY_NAMES[days.at(-1) ?? 0] !== last) days.push(((days.at(-1) ?? 0) + 1) % 7);
  return days;
}

/** The naive reading of the rule: today's windows until midnight, and what yesterday's windows leave after it. */
function naiveInside(
  windows: readonly string[],
  { day, minute }: { readonly day: number; readonly minute: number },
): boolean {
  const text = `${String(Math.floor(minute / 60)).padStart(2, '0')}:${String(minute % 60).padStart(2, '0')}`;
  return windows.some((window) => {
    const [days = '', hours = ''] = window.split(' ');
    const [start = '', end = ''] = hours.split('-');
    const today = naiveDays(days).includes(day);
    const yesterday = naiveDays(days).includes((day + 6) % 7);
    return start < end ? today && start <= text && text < end : (today && start <= text) || (yesterday && text < end);
  });
}

const time = (minute: number) =>
  `${String(Math.floor(minute / 60)).padStart(2, '0')}:${String(minute % 60).padStart(2, '0')}`;
const dayName = fc.constantFrom(...DAY_NAMES);
const days = fc.oneof(
  dayName,
  fc
    .tuple(dayName, dayName)
    .filter(([first, last]) => first !== last)
    .map(([first, last]) => `${first}-${last}`),
);
/** Half of them on the hours at which clocks change, and at midnight. */
const minute = fc.oneof(fc.constantFrom(0, 60, 90, 120, 150, 180, 1439, 1380), fc.nat(1439));
const end = fc.oneof({ weight: 6, arbitrary: minute }, { weight: 1, arbitrary: fc.constant(1440) });
const window = fc
  .tuple(days, minute, end)
  .filter(([, from, to]) => from !== to)
  .map(([range, from, to]) => `${range} ${time(from)}-${time(to)}`);
const windows = fc.array(window, { minLength: 1, maxLength: 6 });

/** The instant (UTC) of the n-th Sunday of a month (0 = January); n = -1: the last. */
function sunday(year: number, month: number, n: number, hour: number): number {
  const first = new Date(Date.UTC(year, month, 1));
  const day = 1 + ((7 - first.getUTCDay()) % 7);
  const length = new Date(Date.UTC(year, month + 1, 0)).getUTCDate();
  const date = n > 0 ? day + 7 * (n - 1) : day + 7 * Math.floor((length - day) / 7);
  return Date.UTC(year, month, date, hour);
}

const year = fc.integer({ min: 2007, max: 2037 });
const CHANGES: Readonly<Record<string, (year: number) => readonly number[]>> = {
  'Europe/Berlin': (of) => [sunday(of, 2, -1, 1), sunday(of, 9, -1, 1)],
  'America/New_York': (of) => [sunday(of, 2, 2, 7), sunday(of, 10, 1, 6)],
};

describe('weekly hours', () => {
  test.each([
    ['Mon-Fri 08:00-18:00', '2026-11-16T08:00:00Z', true, 'the start is included'],
    ['Mon-Fri 08:00-18:00', '2026-11-16T07:59:59Z', false, 'before the start'],
    ['Mon-Fri 08:00-18:00', '2026-11-20T17:59:59Z', true, 'before the end of the last day'],
    ['Mon-Fri 08:00-18:00', '2026-11-20T18:00:00Z', false, 'the end is excluded'],
    ['Mon-Fri 08:00-18:00', '2026-11-21T12:00:00Z', false, 'on a Saturday'],
    ['Sat 22:00-02:00', '2026-11-21T23:00:00Z', true, 'on the day of the start'],
    ['Sat 22:00-02:00', '2026-11-22T01:59:59Z', true, 'after midnight'],
    ['Sat 22:00-02:00', '2026-11-22T02:00:00Z', false, 'at the end after midnight'],
    ['Sat 22:00-02:00', '2026-11-21T01:00:00Z', false, 'in the first hours of the day of the start'],
    ['Sun 22:00-02:00', '2026-11-23T01:00:00Z', true, 'from Sunday to Monday'],
    ['Sun 22:00-02:00', '2026-11-22T01:00:00Z', false, 'on Sunday before the start'],
    ['Sun 22:00-24:00', '2026-11-22T23:59:59Z', true, 'in the last minute of the week'],
    ['Sun 22:00-24:00', '2026-11-23T00:00:00Z', false, 'at the end of the week'],
    ['Sun 22:00-00:00', '2026-11-22T23:59:59Z', true, 'before a midnight that ends the window'],
    ['Sun 22:00-00:00', '2026-11-23T00:00:00Z', false, 'at a midnight that ends the window'],
    ['Fri-Mon 09:00-10:00', '2026-11-23T09:30:00Z', true, 'on the last day of a range over the end of the week'],
    ['Fri-Mon 09:00-10:00', '2026-11-22T09:30:00Z', true, 'inside a range over the end of the week'],
    ['Fri-Mon 09:00-10:00', '2026-11-24T09:30:00Z', false, 'after a range over the end of the week'],
    ['Wed 00:00-24:00', '2026-11-18T00:00:00Z', true, 'on a whole day'],
  ])('%s at %s: %s (%s)', (text, at, expected) => {
    expect(inForce([text], at)).toBe(expected);
    expect(inForce([text], at, undefined, 'not_in')).toBe(!expected);
  });

  test('a deny outside the office hours is in force the whole weekend', () => {
    const weekend = Array.from({ length: 48 }, (_, hour) => new Date(Date.UTC(2026, 10, 21, hour)).toISOString());
    expect(weekend.every((at) => inForce(['Mon-Fri 08:00-18:00'], at, 'UTC', 'not_in'))).toBe(true);
    expect(inForce(['Mon-Fri 08:00-18:00'], '2026-11-18T12:00:00Z', 'UTC', 'not_in')).toBe(false);
  });

  test('an hour that daylight saving repeats matches twice, one that it skips never', () => {
    const hour = ['Sun 02:00-03:00'];
    expect(inForce(hour, '2026-10-25T00:30:00Z', 'Europe/Berlin')).toBe(true);
    expect(inForce(hour, '2026-10-25T01:30:00Z', 'Europe/Berlin')).toBe(true);
    const skipped = Array.from({ length: 24 * 60 }, (_, i) => new Date(Date.UTC(2026, 2, 29, 0, i)).toISOString());
    expect(skipped.some((at) => inForce(hour, at, 'Europe/Berlin'))).toBe(false);
  });

  test('without a readable clock, a deny is in force and an allow is not, for both operators', () => {
    for (const operator of ['in', 'not_in'] as const) {
      const compiled = compileConditions({ weekly_hours: { [operator]: ['Mon-Sun 00:00-24:00'] } });
      for (const now of [
        conditionInputs(Number.NaN, undefined, 'UTC'),
        conditionInputs(0, undefined, 'Mars/Olympus'),
      ]) {
        expect(conditionsHold(compiled, 'deny', now)).toBe(true);
        expect(conditionsHold(compiled, 'allow', now)).toBe(false);
      }
    }
  });

  test('agree with a naive reader in every minute of the week', () => {
    const monday = Date.UTC(2026, 10, 16);
    fc.assert(
      fc.property(windows, (list) => {
        const compiled = compileConditions({ weekly_hours: { in: list } });
        for (let at = 0; at < 7 * 1440; at++) {
          const expected = naiveInside(list, { day: Math.floor(at / 1440), minute: at % 1440 });
          const actual = conditionsHold(compiled, 'allow', conditionInputs(monday + at * 60_000, undefined, undefined));
          if (actual !== expected) expect.fail(`${at}: ${actual}`);
        }
      }),
      { numRuns: 30 },
    );
  });

  test.each(Object.keys(CHANGES))(
    'agree with a naive reader of the wall around the changes of the clock: %s',
    (zone) => {
      // From two days before a change until two days after it: the night to Sunday, and that to Monday.
      const instant = fc
        .tuple(year, fc.boolean(), fc.integer({ min: -48 * 60, max: 48 * 60 }), fc.constantFrom(0, 59_999))
        .map(([of, spring, minutes, ms]) => (CHANGES[zone]?.(of)[spring ? 0 : 1] ?? 0) + minutes * 60_000 + ms);
      const nearby = fc.array(instant, { minLength: 1, maxLength: 8 });
      const seen = new Set<boolean>();
      fc.assert(
        fc.property(windows, nearby, fc.boolean(), fc.boolean(), (list, instants, negated, tenants) => {
          const operand = negated ? { not_in: list } : { in: list };
          const compiled = compileConditions({ weekly_hours: operand, ...(tenants ? {} : { timezone: zone }) });
          for (const nowMs of instants) {
            const inside = naiveInside(list, naiveWall(zone, nowMs));
            seen.add(inside);
            const now = conditionInputs(nowMs, undefined, tenants ? zone : 'Asia/Kolkata');
            expect(conditionsHold(compiled, 'allow', now)).toBe(inside !== negated);
          }
        }),
        { numRuns: 500 },
      );
      expect(seen).toEqual(new Set([true, false]));
      // The instants of the test are those at which the zone's clock changes.
      for (const at of CHANGES[zone]?.(2026) ?? []) {
        const shown = [naiveWall(zone, at - 1), naiveWall(zone, at)].map((wall) => wall.minute);
        expect(((shown[1] ?? 0) - (shown[0] ?? 0) + 1440) % 1440).not.toBe(1);
        expect(naiveWall(zone, at + 24 * HOUR_MS).day).toBe(0);
      }
    },
  );
});
