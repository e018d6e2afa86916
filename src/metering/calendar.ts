/** Days and months in a tenant's time zone. */

import { minuteOfWeek, WEEK_MINUTES } from '../decision/clock.ts';
import { periodAt } from './budget-periods.ts';

const MINUTE_MS = 60_000;
const MAX_ZONES = 4096;

export interface ZonedMinute {
  /** Minutes since the epoch. */
  readonly minute: number;
  /** Minutes that the zone's clock is ahead of UTC. */
  readonly offset: number;
  /** `2026-11` */
  readonly period: string;
  /** The beginning of the next calendar month, milliseconds since the epoch. */
  readonly periodEndsMs: number;
}

export function dayOf(minute: number, offset: number): string {
  return new Date((minute + offset) * MINUTE_MS).toISOString().slice(0, 10);
}

export function periodOf(minute: number, offset: number): string {
  return dayOf(minute, offset).slice(0, 7);
}

/** Returns the minutes that the zone is ahead of UTC; 0 for an unknown zone. */
function offsetAt(zone: string, minute: number): number {
  const utc = minuteOfWeek('UTC', minute * MINUTE_MS) ?? 0;
  const local = minuteOfWeek(zone, minute * MINUTE_MS) ?? utc;
  // A zone is at most a day away from UTC, so the shorter way around the week is the right one.
  const ahead = (local - utc + WEEK_MINUTES) % WEEK_MINUTES;
  return ahead > WEEK_MINUTES / 2 ? ahead - WEEK_MINUTES : ahead;
}

/** Caches the last minute of each zone. */
export class Calendar {
  readonly #moments = new Map<string, ZonedMinute>();

  at(zone: string, nowMs: number): ZonedMinute {
    const minute = Math.floor(nowMs / MINUTE_MS);
    const known = this.#moments.get(zone);
    if (known !== undefined && known.minute === minute) return known;
    const moment = readMinute(zone, minute);
    if (known === undefined && this.#moments.size >= MAX_ZONES) this.#moments.clear();
    this.#moments.set(zone, moment);
    return moment;
  }
}

function readMinute(zone: string, minute: number): ZonedMinute {
  const { name: period, endsMs = Number.POSITIVE_INFINITY } = periodAt('month', zone, minute * MINUTE_MS);
  return { minute, offset: offsetAt(zone, minute), period, periodEndsMs: endsMs };
}
