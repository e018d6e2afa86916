/** The days and months in which usage is counted, in a tenant's time zone. */

import { Calendar, dayOf, type ZonedMinute } from '../../metering/calendar.ts';
import type { DaySpan, MonthlySpan } from './queries.ts';

export const UTC = 'UTC';
const DAY_MS = 86_400_000;
const calendar = new Calendar();

/** @param timezone undefined = UTC */
export function momentOf(timezone: string | undefined, atMs: number): ZonedMinute {
  return calendar.at(timezone ?? UTC, atMs);
}

export function dayIn({ minute, offset }: ZonedMinute): string {
  return dayOf(minute, offset);
}

/** Returns the days of a month. @param period `2026-11` */
export function spanOfPeriod(period: string): DaySpan {
  return { from: `${period}-01`, to: lastDay(period) };
}

/** Returns the number of days of a span; 0 or less if it ends before it begins. */
export function daysIn({ from, to }: DaySpan): number {
  return Math.round((Date.parse(to) - Date.parse(from)) / DAY_MS) + 1;
}

/**
 * Divides a span into whole months, the days to add, and the days to subtract. A month of which the span has more than
 * half is added whole, and its other days are subtracted, so at most half of the days of two months are read.
 */
export function monthlySpan(span: DaySpan): MonthlySpan {
  const months: string[] = [];
  const added: DaySpan[] = [];
  const removed: DaySpan[] = [];
  for (let month = spanOfPeriod(span.from.slice(0, 7)); ; month = spanOfPeriod(shifted(month.to, 1).slice(0, 7))) {
    const part = { from: later(span.from, month.from), to: earlier(span.to, month.to) };
    if (2 * daysIn(part) <= daysIn(month)) added.push(part);
    else {
      months.push(month.from);
      if (part.from > month.from) removed.push({ from: month.from, to: shifted(part.from, -1) });
      if (part.to < month.to) removed.push({ from: shifted(part.to, 1), to: month.to });
    }
    // The year 10000 has a text that comes before every other one, so no month after the last one is computed.
    if (month.to >= span.to) return { months, added, removed };
  }
}

function lastDay(period: string): string {
  const [year = '', month = ''] = period.split('-');
  return new Date(Date.UTC(Number(year), Number(month), 0)).toISOString().slice(0, 10);
}

function shifted(day: string, days: number): string {
  return new Date(Date.parse(day) + days * DAY_MS).toISOString().slice(0, 10);
}

const later = (a: string, b: string): string => (a > b ? a : b);
const earlier = (a: string, b: string): string => (a < b ? a : b);
