/** The calendar periods of budgets. A period is the same for every process, because it follows from the instant alone. */

import { spelledTimezone } from '../decision/clock.ts';
import type { BudgetPeriod, BudgetRecord } from '../domain/records.ts';

/** Times are milliseconds since the epoch. */
export interface Period {
  /** `2026-11-26T14`, `2026-11-26`, `2026-W48`, `2026-11` or `total` */
  readonly name: string;
  /** Undefined: the period has no beginning. */
  readonly startsMs: number | undefined;
  /** Undefined: the period has no end. */
  readonly endsMs: number | undefined;
}

/** Returns the name of a counter: `Charge.period`. @param share the caller whose amount it is; empty for a shared one */
export function counterName(
  { id, epoch }: Pick<BudgetRecord, 'id' | 'epoch'>,
  share: string,
  { name }: Pick<Period, 'name'>,
): string {
  return `${id}${share === '' ? '' : `/${share}`} ${name}#${epoch}`;
}

const TOTAL: Period = Object.freeze({ name: 'total', startsMs: undefined, endsMs: undefined });
const UTC = 'UTC';
const HOUR_MS = 3_600_000;
const DAY_HOURS = 24;
const MAX_KNOWN = 4096;

/** The last period of each zone and kind. */
const known = new Map<string, Period>();

/**
 * Returns the period of an instant.
 * @param zone an IANA name; undefined or unknown = UTC
 */
export function periodAt(period: BudgetPeriod, zone: string | undefined, nowMs: number): Period {
  if (period === 'total') return TOTAL;
  const key = `${period} ${zone ?? UTC}`;
  const last = known.get(key);
  if (last !== undefined && isIn(last, nowMs)) return last;
  const found = Object.freeze(computed(period, zonedTime(zone, nowMs)));
  if (known.size >= MAX_KNOWN) known.clear();
  known.set(key, found);
  return found;
}

function isIn({ startsMs, endsMs }: Period, nowMs: number): boolean {
  return (startsMs === undefined || startsMs <= nowMs) && (endsMs === undefined || nowMs < endsMs);
}

function zonedTime(zone: string | undefined, nowMs: number): Temporal.ZonedDateTime {
  const instant = Temporal.Instant.fromEpochMilliseconds(Math.floor(nowMs));
  try {
    return instant.toZonedDateTimeISO(spelledTimezone(zone ?? UTC));
  } catch {
    return instant.toZonedDateTimeISO(UTC);
  }
}

function computed(period: Exclude<BudgetPeriod, 'total'>, time: Temporal.ZonedDateTime): Period {
  const date = time.toPlainDate();
  switch (period) {
    case 'hour':
      return hourOf(time);
    case 'day':
      return between(date.toString(), time, date, date.add({ days: 1 }));
    case 'week': {
      const monday = date.subtract({ days: date.dayOfWeek - 1 });
      const week = `${date.yearOfWeek ?? date.year}-W${String(date.weekOfYear ?? 1).padStart(2, '0')}`;
      return between(week, time, monday, monday.add({ weeks: 1 }));
    }
    case 'month': {
      const first = date.with({ day: 1 });
      return between(date.toPlainYearMonth().toString(), time, first, first.add({ months: 1 }));
    }
    default:
      return period satisfies never;
  }
}

function between(
  name: string,
  { timeZoneId }: Temporal.ZonedDateTime,
  first: Temporal.PlainDate,
  next: Temporal.PlainDate,
): Period {
  const beginOf = (date: Temporal.PlainDate): number => date.toZonedDateTime(timeZoneId).epochMilliseconds;
  return { name, startsMs: beginOf(first), endsMs: beginOf(next) };
}

/**
 * Returns the hour of the zone's clock. On a day on which the clock changes, an hour is one of one offset, which its
 * name has: `2026-10-25T02+0200`.
 */
function hourOf(time: Temporal.ZonedDateTime): Period {
  const { epochMilliseconds: nowMs, offset, offsetNanoseconds } = time;
  const name = `${time.toPlainDate().toString()}T${String(time.hour).padStart(2, '0')}`;
  const intoHourMs = modulo(nowMs + offsetNanoseconds / 1e6, HOUR_MS);
  const startsMs = nowMs - intoHourMs;
  if (time.hoursInDay === DAY_HOURS) return { name, startsMs, endsMs: startsMs + HOUR_MS };
  // A transition at this instant is the next one of the instant before.
  const before = time.add({ milliseconds: 1 }).getTimeZoneTransition('previous')?.epochMilliseconds;
  const after = time.getTimeZoneTransition('next')?.epochMilliseconds;
  return {
    name: name + offset.replace(':', ''),
    startsMs: Math.max(startsMs, before ?? startsMs),
    endsMs: Math.min(startsMs + HOUR_MS, after ?? Number.POSITIVE_INFINITY),
  };
}

function modulo(value: number, by: number): number {
  return ((value % by) + by) % by;
}
