/** The months in which usage is counted: calendar months in a tenant's time zone. */

import { Calendar, dayOf, type ZonedMinute } from '../../metering/calendar.ts';
import type { UsageMonth } from './queries.ts';

const UTC = 'UTC';
const calendar = new Calendar();

/** @param timezone undefined = UTC */
export function momentOf(timezone: string | undefined, atMs: number): ZonedMinute {
  return calendar.at(timezone ?? UTC, atMs);
}

export function dayIn({ minute, offset }: ZonedMinute): string {
  return dayOf(minute, offset);
}

/** @param period `2026-11` */
export function monthOf(period: string): UsageMonth {
  const [year = '', month = ''] = period.split('-');
  return { year: Number(year), month: Number(month) };
}
