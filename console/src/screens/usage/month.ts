/** Calendar months (`2026-11`) and days (`2026-11-01`) as the API writes them. */

import { serverNow } from '../../api/clock.ts';

const MONTH = /^(\d{4})-(0[1-9]|1[0-2])$/;
const DAY = /^\d{4}-\d\d-\d\d$/;
const DAY_MS = 86_400_000;
/** The most days of one answer. */
export const MAX_DAYS = 366;
const name = new Intl.DateTimeFormat('en', { month: 'long', year: 'numeric', timeZone: 'UTC' });
const day = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', year: 'numeric', timeZone: 'UTC' });

/** The first and the last day, which is included. */
export interface Days {
  readonly from: string;
  readonly to: string;
}

export function monthOf(time: number): string {
  return dayOf(time).slice(0, 7);
}

export function dayOf(time: number): string {
  return new Date(time).toISOString().slice(0, 10);
}

/** Returns the time whose date and hours in UTC are those that a clock in the zone shows. */
export function timeIn(zone: string, time: number): number {
  const parts = new Intl.DateTimeFormat('en', {
    ...{ timeZone: zone, hourCycle: 'h23' },
    ...{ year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric', second: 'numeric' },
  }).formatToParts(time);
  const of = (type: Intl.DateTimeFormatPartTypes): number => Number(parts.find((part) => part.type === type)?.value);
  return Date.UTC(of('year'), of('month') - 1, of('day'), of('hour'), of('minute'), of('second'));
}

/** Returns the month `by` months later. An invalid month counts as the current one. */
export function shifted(month: string, by: number): string {
  const [, year, number] = MONTH.exec(month) ?? MONTH.exec(monthOf(serverNow())) ?? [];
  return monthOf(Date.UTC(Number(year), Number(number) - 1 + by, 1));
}

/** `November 2026` */
export function monthName(month: string): string {
  return MONTH.test(month) ? name.format(new Date(`${month}-01T00:00:00Z`)) : month;
}

/** `1 Nov 2026 to 15 Nov 2026` */
export function daysName({ from, to }: Days): string {
  const one = (text: string): string => (Number.isNaN(Date.parse(text)) ? text : day.format(new Date(text)));
  return from === to ? one(from) : `${one(from)} to ${one(to)}`;
}

/** Returns the days of a month; of the current one for an invalid month. */
export function daysOfMonth(month: string): Days {
  const first = MONTH.test(month) ? month : monthOf(serverNow());
  return { from: `${first}-01`, to: dayOf(Date.parse(`${shifted(first, 1)}-01`) - DAY_MS) };
}

/** Returns the last days up to today. @param now as `timeIn` returns it */
export function lastDays(length: number, now: number): Days {
  return { from: dayOf(now - (length - 1) * DAY_MS), to: dayOf(now) };
}

/** Returns the number of days; NaN if one is no day. */
export function lengthOf({ from, to }: Days): number {
  return DAY.test(from) && DAY.test(to) ? Math.round((Date.parse(to) - Date.parse(from)) / DAY_MS) + 1 : Number.NaN;
}

/** Returns all days in order, at most MAX_DAYS. */
export function daysOf(days: Days): readonly string[] {
  const length = lengthOf(days);
  if (!(length > 0)) return [];
  return Array.from({ length: Math.min(length, MAX_DAYS) }, (_, i) => dayOf(Date.parse(days.from) + i * DAY_MS));
}
