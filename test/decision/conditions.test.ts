import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { dayOfWeek, isTimezone, minuteOfDay, minuteOfWeek } from '../../src/decision/clock.ts';
import type { PolicyConditions } from '../../src/decision/condition-table.ts';
import { compileConditions, conditionInputs, conditionsHold } from '../../src/decision/conditions.ts';
import { parseConditions } from '../../src/decision/validate.ts';
import { DAY_NAMES, type StoredConditions } from '../../src/domain/records.ts';
import { enough, runs } from '../support/properties.ts';
import { naiveWall } from './naive-wall.ts';

const ZONES = [
  'UTC',
  'Europe/Berlin',
  'America/New_York',
  'Asia/Kolkata',
  'Australia/Lord_Howe',
  'Pacific/Apia',
  'America/St_Johns',
  'Etc/GMT+12',
];

const instant = fc.integer({ min: Date.UTC(1975, 0), max: Date.UTC(2037, 11, 31) });
const NEVER_SEEN = undefined;

function holds(
  conditions: StoredConditions,
  time: string,
  address: string | undefined,
  effect: 'allow' | 'deny' = 'allow',
  zone?: string,
): boolean {
  return conditionsHold(compileConditions(conditions), effect, conditionInputs(Date.parse(time), address, zone));
}

describe('wall clocks', () => {
  test('agree with the calendar, in any order of instants', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...ZONES),
        fc.array(fc.tuple(instant, fc.nat(90_000)), { maxLength: 4 }),
        (zone, steps) => {
          for (const [start, later] of steps) {
            for (const at of [start, start + later]) {
              const minute = minuteOfWeek(zone, at) ?? Number.NaN;
              expect({ minute: minuteOfDay(minute), day: dayOfWeek(minute) }).toEqual(naiveWall(zone, at));
            }
          }
        },
      ),
      { numRuns: runs(300) },
    );
  });

  test('an invalid zone and an invalid instant have no wall clock', () => {
    for (const zone of ['', 'Mars/Olympus', '+01:00', '../etc/passwd']) {
      expect(isTimezone(zone)).toBe(false);
      expect(minuteOfWeek(zone, 0)).toBeUndefined();
    }
    for (const at of [Number.NaN, Number.POSITIVE_INFINITY, 9e15])
      expect(minuteOfWeek('Europe/Berlin', at)).toBeUndefined();
    expect(isTimezone('Europe/Berlin')).toBe(true);
    // As many texts as there are ways to write it, and one zone.
    for (const text of ['EUROPE/BERLIN', 'europe/berlin', 'eUrOpE/bErLiN']) {
      expect(minuteOfWeek(text, 1e12)).toBe(minuteOfWeek('Europe/Berlin', 1e12));
    }
  });

  test('instants before the epoch and before whole-minute offsets are right', () => {
    expect(minuteOfWeek('UTC', -60_000)).toBe(2 * 1440 + 1439);
    const early = Date.UTC(1900, 0, 1, 12, 0, 20);
    expect(minuteOfDay(minuteOfWeek('Europe/Amsterdam', early) ?? -1)).toBe(
      naiveWall('Europe/Amsterdam', early).minute,
    );
  });
});

describe('time', () => {
  test.each([
    ['2026-11-18T21:00:00Z', true, 'the start is included'],
    ['2026-11-18T20:59:59Z', false, 'before the start'],
    ['2026-11-18T23:30:00Z', true, 'after midnight'],
    ['2026-11-18T04:59:59Z', true, 'just before the end'],
    ['2026-11-18T05:00:00Z', false, 'the end is excluded'],
  ])('a span across midnight in Berlin at %s: %s (%s)', (time, expected) => {
    const night = { time: { between: ['22:00', '06:00'] }, timezone: 'Europe/Berlin' } as const;
    expect(holds(night, time, NEVER_SEEN)).toBe(expected);
    expect(holds({ ...night, time: { not_between: ['22:00', '06:00'] } }, time, NEVER_SEEN)).toBe(!expected);
  });

  test('a span that ends at 24:00 includes the last minute of the day and nothing of the next day', () => {
    const evening = { time: { between: ['22:00', '24:00'] } } as const;
    expect(holds(evening, '2026-11-18T21:59:59Z', NEVER_SEEN)).toBe(false);
    expect(holds(evening, '2026-11-18T23:59:59Z', NEVER_SEEN)).toBe(true);
    expect(holds(evening, '2026-11-19T00:00:00Z', NEVER_SEEN)).toBe(false);
    expect(holds({ time: { not_between: ['00:00', '24:00'] } }, '2026-11-18T12:00:00Z', NEVER_SEEN)).toBe(false);
  });

  test('an hour that daylight saving repeats matches twice, one that it skips never', () => {
    const hour = { time: { between: ['02:00', '03:00'] }, timezone: 'Europe/Berlin' } as const;
    expect(holds(hour, '2026-10-25T00:30:00Z', NEVER_SEEN)).toBe(true);
    expect(holds(hour, '2026-10-25T01:30:00Z', NEVER_SEEN)).toBe(true);
    const skipped = Array.from({ length: 24 * 60 }, (_, i) => new Date(Date.UTC(2026, 2, 29, 0, i)).toISOString());
    expect(skipped.some((time) => holds(hour, time, NEVER_SEEN))).toBe(false);
  });

  test("the zone is the condition's, else the tenant's, else UTC", () => {
    const noon = { time: { between: ['12:00', '12:01'] } } as const;
    expect(holds(noon, '2026-11-18T12:00:00Z', NEVER_SEEN)).toBe(true);
    expect(holds(noon, '2026-11-18T11:00:00Z', NEVER_SEEN, 'allow', 'Europe/Berlin')).toBe(true);
    expect(
      holds({ ...noon, timezone: 'Asia/Kolkata' }, '2026-11-18T06:30:00Z', NEVER_SEEN, 'allow', 'Europe/Berlin'),
    ).toBe(true);
  });
});

describe('day of week', () => {
  test('is the day of the instant in its zone', () => {
    const monday = { day_of_week: { in: ['Mon'] }, timezone: 'Pacific/Auckland' } as const;
    expect(holds(monday, '2026-11-15T12:00:00Z', NEVER_SEEN)).toBe(true);
    expect(holds({ ...monday, timezone: 'UTC' }, '2026-11-15T12:00:00Z', NEVER_SEEN)).toBe(false);
    expect(holds({ day_of_week: { not_in: ['Sat', 'Sun'] } }, '2026-11-15T12:00:00Z', NEVER_SEEN)).toBe(false);
  });
});

describe('all conditions together', () => {
  test('no condition always holds', () => {
    expect(holds({}, '2026-11-18T12:00:00Z', NEVER_SEEN)).toBe(true);
    expect(holds({ timezone: 'Europe/Berlin' }, '2026-11-18T12:00:00Z', NEVER_SEEN)).toBe(true);
  });

  test('both operators of one condition must hold', () => {
    const ip = { ip_address: { in: ['10.0.0.0/8'], not_in: ['10.1.0.0/16'] } } as const;
    expect(holds(ip, '2026-11-18T12:00:00Z', '10.2.0.1')).toBe(true);
    expect(holds(ip, '2026-11-18T12:00:00Z', '10.1.0.1')).toBe(false);
  });

  test.each([undefined, '', 'unknown', '010.0.0.1', '10.0.0.1:443'])(
    'an address of %j is missing: a deny applies, an allow does not',
    (address) => {
      for (const ip of [{ in: ['10.0.0.0/8'] }, { not_in: ['10.0.0.0/8'] }]) {
        expect(holds({ ip_address: ip }, '2026-11-18T12:00:00Z', address, 'deny')).toBe(true);
        expect(holds({ ip_address: ip }, '2026-11-18T12:00:00Z', address, 'allow')).toBe(false);
      }
    },
  );

  test('a missing address does not make the other conditions of a deny hold', () => {
    const conditions = { ip_address: { in: ['10.0.0.0/8'] }, day_of_week: { in: ['Mon'] } } as const;
    expect(holds(conditions, '2026-11-18T12:00:00Z', undefined, 'deny')).toBe(false);
  });

  test('with a stored condition that cannot be read, a deny applies and an allow does not', () => {
    const stored: readonly StoredConditions[] = [
      { ip_address: { in: ['10.0.0.1/8'] } },
      { ip_address: { in: [] } },
      { ip_address: {} },
      { ip_address: null },
      { ip_address: [] },
      { ip_address: { in: '10.0.0.1' } },
      { ip_address: { in: [10] } },
      { ip_address: { in: ['10.0.0.1'], near: ['office'] } },
      { time: { between: ['25:00', '06:00'] } },
      { time: { between: ['06:00', '06:00'] } },
      { time: { between: ['24:00', '06:00'] } },
      { time: {} },
      { day_of_week: { in: ['Someday'] } },
      { day_of_week: { in: [] } },
      { weekly_hours: {} },
      { weekly_hours: null },
      { weekly_hours: { in: [] } },
      { weekly_hours: { in: 'Mon-Sun 00:00-24:00' } },
      { weekly_hours: { in: ['Mon-Sun 00:00-24:00', 'Holidays'] } },
      { weekly_hours: { not_in: ['Wed 12:00-12:00'] } },
      { weekly_hours: { between: ['Mon-Sun 00:00-24:00'] } },
      { weekly_hours: { in: Array.from({ length: 85 }, () => 'Mon-Sun 00:00-24:00') } },
      { weekly_hours: { in: ['Mon-Sun 00:00-24:00'] }, timezone: 'Mars/Olympus' },
      { moon_phase: { in: ['full'] } },
      { constructor: {} },
      { time: { between: ['08:00', '18:00'] }, timezone: 'Mars/Olympus' },
      { timezone: 1 },
    ];
    for (const conditions of stored) {
      const label = JSON.stringify(conditions);
      expect(holds(conditions, '2026-11-18T12:00:00Z', '10.0.0.1', 'deny'), label).toBe(true);
      expect(holds(conditions, '2026-11-18T12:00:00Z', '10.0.0.1', 'allow'), label).toBe(false);
    }
  });

  /**
   * Returns a naive reader's result for one stored policy. It reads each operator by itself, and a condition that the
   * API would reject counts as unreadable.
   */
  function naiveHolds(stored: object, effect: 'allow' | 'deny', time: string, address: string): boolean {
    const { timezone, ...conditions }: Record<string, unknown> = { ...stored };
    const zoned = timezone === undefined ? {} : { timezone };
    const alone = Object.entries(conditions).flatMap(([key, condition]): unknown[] =>
      typeof condition === 'object' &&
      condition !== null &&
      !Array.isArray(condition) &&
      Object.keys(condition).length > 0
        ? Object.entries(condition).map(([operator, operand]) => ({
            [key]: { [operator]: operand },
            ...(key === 'ip_address' ? {} : zoned),
          }))
        : [{ [key]: condition }],
    );
    return [zoned, ...alone].every((one) => {
      const parsed = parseConditions(one);
      return parsed.kind === 'errors' ? effect === 'deny' : holds(parsed.value, time, address, effect);
    });
  }

  test('stored in any form, they hold like those of a naive reader that reads each operator by itself', () => {
    const operand = fc.oneof(
      {
        weight: 4,
        arbitrary: fc.constantFrom(
          ['10.0.0.0/8'],
          ['Mon', 'Wed'],
          ['08:00', '18:00'],
          ['22:00', '06:00'],
          ['Wed 08:00-18:00'],
        ),
      },
      fc.constantFrom<unknown>(
        [],
        null,
        {},
        'x',
        1,
        ['x'],
        [1],
        [''],
        ['10.0.0.1/8'],
        ['08:00'],
        ['08:00', '08:00'],
        ['Wed 8-18'],
      ),
    );
    const operator = fc.constantFrom('in', 'not_in', 'between', 'not_between', 'near', '__proto__', 'constructor');
    const condition = fc.oneof(
      { weight: 5, arbitrary: fc.dictionary(operator, operand, { maxKeys: 3 }) },
      fc.constantFrom<unknown>(null, [], 'x', 1, true),
    );
    const key = fc.constantFrom(
      'ip_address',
      'time',
      'day_of_week',
      'weekly_hours',
      'ip_addres',
      'constructor',
      'toString',
    );
    const zone = fc.constantFrom<unknown>('UTC', 'Asia/Almaty', 'Mars/Olympus', '', null, 1, {});
    const stored = fc
      .tuple(fc.dictionary(key, condition, { maxKeys: 3 }), fc.option(zone, { nil: undefined }))
      .map(([conditions, timezone]) => (timezone === undefined ? conditions : { ...conditions, timezone }));
    let read = 0;
    fc.assert(
      fc.property(
        stored,
        fc.constantFrom('allow', 'deny'),
        fc.constantFrom('10.0.0.1', '192.0.2.1'),
        (conditions, effect, address) => {
          const time = '2026-11-18T12:00:00Z';
          expect(holds(conditions, time, address, effect)).toBe(naiveHolds(conditions, effect, time, address));
          // A condition that the API would reject never permits a request.
          if (parseConditions(conditions).kind === 'ok') read++;
          else expect(holds(conditions, time, address, 'allow')).toBe(false);
        },
      ),
      { numRuns: runs(5000) },
    );
    expect(read).toBeGreaterThanOrEqual(enough(100));
  });

  test('agree with each read by itself', () => {
    const clock = fc
      .tuple(fc.nat(23), fc.nat(59))
      .map(([h, m]) => `${String(h).padStart(2, '0')}:${String(m).padStart(2, '0')}`);
    const span = fc.tuple(clock, clock).filter(([start, end]) => start !== end);
    const days = fc.uniqueArray(fc.constantFrom(...DAY_NAMES), { minLength: 1 });
    const zone = fc.option(fc.constantFrom(...ZONES), { nil: undefined });
    fc.assert(
      fc.property(
        span,
        fc.boolean(),
        days,
        fc.boolean(),
        zone,
        zone,
        instant,
        (between, notTime, list, notDay, own, tenants, nowMs) => {
          const conditions: PolicyConditions = {
            time: notTime ? { not_between: between } : { between },
            day_of_week: notDay ? { not_in: list } : { in: list },
            ...(own === undefined ? {} : { timezone: own }),
          };
          const wall = naiveWall(own ?? tenants ?? 'UTC', nowMs);
          const text = `${String(Math.floor(wall.minute / 60)).padStart(2, '0')}:${String(wall.minute % 60).padStart(2, '0')}`;
          const [start, end] = between;
          const inside = start < end ? start <= text && text < end : start <= text || text < end;
          const day = list.some((name) => DAY_NAMES.indexOf(name) === wall.day);
          const now = conditionInputs(nowMs, undefined, tenants);
          expect(conditionsHold(compileConditions(conditions), 'deny', now)).toBe(inside !== notTime && day !== notDay);
        },
      ),
      { numRuns: runs(500) },
    );
  });
});
