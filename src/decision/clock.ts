/** Wall clocks: what a clock on a wall of some time zone shows at an instant. An hour that daylight saving repeats is shown twice. */

const MINUTE_MS = 60_000;
const DAY_MINUTES = 1440;
export const WEEK_MINUTES = 7 * DAY_MINUTES;
/** The epoch was a Thursday; weeks start on Monday. */
const EPOCH_MINUTE_OF_WEEK = 3 * DAY_MINUTES;
/** The last instant a Date can hold (ECMA-262, section 21.4.1.1). */
const MAX_INSTANT_MS = 8.64e15;
/** Since then every zone is whole minutes away from UTC, so that a minute's wall clock can be remembered. */
const WHOLE_MINUTES_SINCE_MS = 1e11;

const MAX_FORMATTERS = 64;
const MAX_REMEMBERED_ZONES = 2048;

const ZONE_NAME = /^[A-Za-z][A-Za-z0-9_+/-]{0,63}$/;
const WEEKDAYS: ReadonlyMap<string, number> = new Map([
  ['Mon', 0],
  ['Tue', 1],
  ['Wed', 2],
  ['Thu', 3],
  ['Fri', 4],
  ['Sat', 5],
  ['Sun', 6],
]);

const formatters = new Map<string, Intl.DateTimeFormat>();
const remembered = new Map<string, { minute: number; value: number }>();

/** A formatter is large (tens of kilobytes), so few are kept; the last minute of each zone is remembered apart. */
function formatter(zone: string): Intl.DateTimeFormat | undefined {
  const known = formatters.get(zone);
  if (known !== undefined) return known;
  if (!ZONE_NAME.test(zone)) return undefined;
  try {
    const made = new Intl.DateTimeFormat('en-US', {
      timeZone: zone,
      calendar: 'gregory',
      numberingSystem: 'latn',
      hourCycle: 'h23',
      weekday: 'short',
      hour: '2-digit',
      minute: '2-digit',
    });
    if (formatters.size >= MAX_FORMATTERS) formatters.clear();
    formatters.set(zone, made);
    return made;
  } catch {
    return undefined;
  }
}

/** Whether the text names a zone of the IANA time zone database that this process knows. Offsets (`+01:00`) are no names. */
export function isTimezone(zone: string): boolean {
  return formatter(zone) !== undefined;
}

function read(zone: string, nowMs: number): number | undefined {
  const format = formatter(zone);
  if (format === undefined) return undefined;
  let day: number | undefined;
  let hour = Number.NaN;
  let minute = Number.NaN;
  for (const part of format.formatToParts(nowMs)) {
    if (part.type === 'weekday') day = WEEKDAYS.get(part.value);
    else if (part.type === 'hour') hour = Number(part.value);
    else if (part.type === 'minute') minute = Number(part.value);
  }
  const value = day === undefined ? Number.NaN : day * DAY_MINUTES + hour * 60 + minute;
  return Number.isInteger(value) ? value : undefined;
}

/**
 * The minute of the week (0 = Monday 00:00) on the wall of a zone.
 * @returns undefined when the zone is unknown or the instant is none
 */
export function minuteOfWeek(zone: string, nowMs: number): number | undefined {
  if (!(Math.abs(nowMs) <= MAX_INSTANT_MS)) return undefined;
  const minute = Math.floor(nowMs / MINUTE_MS);
  if (zone === 'UTC') return (((minute + EPOCH_MINUTE_OF_WEEK) % WEEK_MINUTES) + WEEK_MINUTES) % WEEK_MINUTES;
  const last = remembered.get(zone);
  if (last !== undefined && last.minute === minute) return last.value;
  const value = read(zone, nowMs);
  if (value === undefined || nowMs < WHOLE_MINUTES_SINCE_MS) return value;
  if (last !== undefined) {
    last.minute = minute;
    last.value = value;
  } else {
    if (remembered.size >= MAX_REMEMBERED_ZONES) remembered.clear();
    remembered.set(zone, { minute, value });
  }
  return value;
}

/** The minute of the day, 0 to 1439. */
export function minuteOfDay(weekMinute: number): number {
  return weekMinute % DAY_MINUTES;
}

/** The day, 0 = Monday. */
export function dayOfWeek(weekMinute: number): number {
  return Math.floor(weekMinute / DAY_MINUTES);
}
