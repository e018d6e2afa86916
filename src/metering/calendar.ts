/** Days and months on the wall of a tenant's time zone. */

import { minuteOfWeek, WEEK_MINUTES } from '../decision/clock.ts';

const MINUTE_MS = 60_000;
const MAX_ZONES = 4096;
/** No month is longer, nor does any change of a clock make it so. */
const LONGEST_MONTH_MINUTES = 32 * 1440;

/** One minute of one zone. */
export interface Moment {
  /** Minutes since the epoch. */
  readonly minute: number;
  /** What the zone's clock is ahead of UTC, in minutes. */
  readonly offset: number;
  /** `2026-11` */
  readonly period: string;
  /** When the next calendar month begins, milliseconds since the epoch. */
  readonly periodEndsMs: number;
}

export function dayOf(minute: number, offset: number): string {
  return new Date((minute + offset) * MINUTE_MS).toISOString().slice(0, 10);
}

export function periodOf(minute: number, offset: number): string {
  return dayOf(minute, offset).slice(0, 7);
}

/** Minutes that the zone is ahead of UTC; 0 for a zone that nobody knows. */
function offsetAt(zone: string, minute: number): number {
  const utc = minuteOfWeek('UTC', minute * MINUTE_MS) ?? 0;
  const local = minuteOfWeek(zone, minute * MINUTE_MS) ?? utc;
  // No zone is more than a day away, so of the two ways around the week the shorter is meant.
  const ahead = (local - utc + WEEK_MINUTES) % WEEK_MINUTES;
  return ahead > WEEK_MINUTES / 2 ? ahead - WEEK_MINUTES : ahead;
}

/** The first minute whose month is not that of `minute`; found by halving, so that a midnight that a clock skips does no harm. */
function endOfMonth(zone: string, minute: number, period: string): number {
  let within = minute;
  let after = minute + LONGEST_MONTH_MINUTES;
  while (after - within > 1) {
    const middle = Math.floor((within + after) / 2);
    if (periodOf(middle, offsetAt(zone, middle)) === period) within = middle;
    else after = middle;
  }
  return after;
}

/** Remembers the last minute of each zone. */
export class Calendar {
  readonly #moments = new Map<string, Moment>();

  at(zone: string, nowMs: number): Moment {
    const minute = Math.floor(nowMs / MINUTE_MS);
    const known = this.#moments.get(zone);
    if (known !== undefined && known.minute === minute) return known;
    const moment = this.#read(zone, minute, known);
    if (known === undefined && this.#moments.size >= MAX_ZONES) this.#moments.clear();
    this.#moments.set(zone, moment);
    return moment;
  }

  #read(zone: string, minute: number, known: Moment | undefined): Moment {
    const offset = offsetAt(zone, minute);
    const period = periodOf(minute, offset);
    const periodEndsMs = known?.period === period ? known.periodEndsMs : endOfMonth(zone, minute, period) * MINUTE_MS;
    return { minute, offset, period, periodEndsMs };
  }
}
