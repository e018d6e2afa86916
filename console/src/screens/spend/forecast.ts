/** The spend at the end of a month, if it grows as before. */

import type { Days } from '../usage/month.ts';

const DAY_MS = 86_400_000;
const CENTS = 2;

/**
 * @param days the whole month
 * @param nowMs the time that the clock of these days shows, as `timeIn` returns it
 * @returns a decimal text; undefined: less than a day has passed, which says nothing about the rest
 */
export function forecastOf(spent: number, { from, to }: Days, nowMs: number): string | undefined {
  const start = Date.parse(from);
  const passed = nowMs - start;
  const whole = Date.parse(to) + DAY_MS - start;
  if (!(passed >= DAY_MS) || passed >= whole) return undefined;
  return ((spent * whole) / passed).toFixed(CENTS);
}
