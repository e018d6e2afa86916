/**
 * The hours of the condition `weekly_hours`: windows of the week, each written as days and a span of time.
 *
 *     window = days " " HH:MM "-" end
 *     days   = day | day "-" another day    ; Fri-Mon is Friday to Monday
 *     end    = HH:MM | "24:00"              ; not the start; before the start: the window ends on the next day
 */

import { DAY_NAMES } from '../domain/records.ts';
import { DAY_MINUTES, parseEndOfSpan, parseTimeOfDay, WEEK_MINUTES } from './clock.ts';
import { MAX_WEEKLY_WINDOWS } from './limits.ts';

/** One window. It begins on each of its days. */
interface WeeklyWindow {
  /** 0 = Monday. */
  readonly firstDay: number;
  /** 1 to 7 days in a row; Monday follows Sunday. */
  readonly days: number;
  /** Minute of the day, 0 to 1439. */
  readonly start: number;
  /** Minutes, 1 to 1440. */
  readonly length: number;
}

/**
 * Minutes of the week (0 = Monday 00:00) at which the hours begin and end, in turn and in ascending order. Hours that
 * cross the end of the week end at 10,080 and begin at 0.
 */
export type WeeklyHours = Uint16Array;

const WINDOW = /^(\w{3})(?:-(\w{3}))? (\d\d:\d\d)-(\d\d:\d\d)$/;
const DAYS: readonly string[] = DAY_NAMES;

/** Reads one window, such as `Mon-Fri 08:00-18:00`. @returns undefined for any other text */
export function parseWeeklyWindow(text: string): WeeklyWindow | undefined {
  const [, first = '', last = '', from = '', to = ''] = WINDOW.exec(text) ?? [];
  const firstDay = DAYS.indexOf(first);
  const lastDay = last === '' ? firstDay : DAYS.indexOf(last);
  const start = parseTimeOfDay(from);
  const end = parseEndOfSpan(to);
  if (firstDay < 0 || lastDay < 0 || last === first || start === undefined || end === undefined || start === end)
    return undefined;
  const days = ((lastDay - firstDay + DAYS.length) % DAYS.length) + 1;
  return { firstDay, days, start, length: start < end ? end - start : end - start + DAY_MINUTES };
}

/** Compiles a list of windows. @returns undefined if one of them cannot be read, or if there are none or too many */
export function compileWeeklyHours(texts: readonly string[]): WeeklyHours | undefined {
  if (texts.length === 0 || texts.length > MAX_WEEKLY_WINDOWS) return undefined;
  const spans: [start: number, end: number][] = [];
  for (const text of texts) {
    const window = parseWeeklyWindow(text);
    if (window === undefined) return undefined;
    for (let day = 0; day < window.days; day++) {
      const start = ((window.firstDay + day) % DAYS.length) * DAY_MINUTES + window.start;
      const end = start + window.length;
      spans.push([start, Math.min(end, WEEK_MINUTES)]);
      if (end > WEEK_MINUTES) spans.push([0, end - WEEK_MINUTES]);
    }
  }
  return mergedEdges(spans);
}

function mergedEdges(spans: [start: number, end: number][]): WeeklyHours {
  const edges: number[] = [];
  for (const [start, end] of spans.sort(([left], [right]) => left - right)) {
    const lastEnd = edges.at(-1);
    if (lastEnd === undefined || start > lastEnd) edges.push(start, end);
    else if (end > lastEnd) edges[edges.length - 1] = end;
  }
  return Uint16Array.from(edges);
}

/** Reports whether a minute of the week is inside the hours. Allocates nothing. */
export function inWeeklyHours(edges: WeeklyHours, minute: number): boolean {
  let passed = 0;
  let end = edges.length;
  while (passed < end) {
    const middle = (passed + end) >> 1;
    if ((edges[middle] ?? WEEK_MINUTES) <= minute) passed = middle + 1;
    else end = middle;
  }
  return passed % 2 === 1;
}
