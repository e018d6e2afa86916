/** Wall clocks: what a clock on a wall of some time zone shows at an instant. An hour that daylight saving repeats is shown twice. */

const MINUTE_MS = 60_000;
export const DAY_MINUTES = 1440;
export const WEEK_MINUTES = 7 * DAY_MINUTES;
/** The epoch was a Thursday; weeks start on Monday. */
const EPOCH_MINUTE_OF_WEEK = 3 * DAY_MINUTES;
/** The last instant a Date can hold (ECMA-262, section 21.4.1.1). */
const MAX_INSTANT_MS = 8.64e15;
const NANOSECONDS_PER_MS = 1e6;

const ZONE_NAME = /^[A-Za-z][A-Za-z0-9_+/-]{0,63}$/;
/** Names differ by case without meaning another zone, and there are some six hundred zones: no text from outside makes this longer. */
const zones = new Map<string, Zone>();

/** A zone and its offset from UTC between two of its transitions. */
interface Zone {
  readonly name: string;
  offsetMs: number;
  /** Milliseconds since the epoch; the end is excluded. Empty before the first instant is asked for. */
  fromMs: number;
  untilMs: number;
}

/** The same by the texts that policies and tenants have written, which may be many. */
const written = new Map<string, Zone>();
const MAX_WRITTEN = 1024;

function zoneNamed(text: string): Zone | undefined {
  const known = written.get(text);
  if (known !== undefined || !ZONE_NAME.test(text)) return known;
  const zone = zoneOf(text.toLowerCase());
  if (zone === undefined) return undefined;
  if (written.size >= MAX_WRITTEN) written.clear();
  written.set(text, zone);
  return zone;
}

function zoneOf(name: string): Zone | undefined {
  const known = zones.get(name);
  if (known !== undefined) return known;
  let spelt: string;
  try {
    spelt = Temporal.Instant.fromEpochMilliseconds(0).toZonedDateTimeISO(name).timeZoneId;
  } catch {
    return undefined;
  }
  const zone: Zone = { name: spelt, offsetMs: 0, fromMs: 0, untilMs: 0 };
  zones.set(name, zone);
  return zone;
}

/** Whether the text names a zone of the IANA time zone database that this process knows. Offsets (`+01:00`) are no names. */
export function isTimezone(text: string): boolean {
  return zoneNamed(text) !== undefined;
}

/** Returns the name of a zone in its usual spelling, so that many spellings are one text; a name that is not known stays as it is. */
export function spelledTimezone(text: string): string {
  return zoneNamed(text)?.name ?? text;
}

/** Reads the offset that the zone has at an instant, and from when until when it has it. */
function readOffset(zone: Zone, nowMs: number): void {
  const there = Temporal.Instant.fromEpochMilliseconds(Math.floor(nowMs)).toZonedDateTimeISO(zone.name);
  zone.offsetMs = there.offsetNanoseconds / NANOSECONDS_PER_MS;
  // A transition at this very instant is the next of the instant before.
  zone.fromMs = there.add({ milliseconds: 1 }).getTimeZoneTransition('previous')?.epochMilliseconds ?? -MAX_INSTANT_MS;
  zone.untilMs = there.getTimeZoneTransition('next')?.epochMilliseconds ?? Number.POSITIVE_INFINITY;
}

/**
 * The minute of the week (0 = Monday 00:00) on the wall of a zone.
 * @returns undefined when the zone is unknown or the instant is none
 */
export function minuteOfWeek(timezone: string, nowMs: number): number | undefined {
  if (!(Math.abs(nowMs) <= MAX_INSTANT_MS)) return undefined;
  let wallMs = nowMs;
  if (timezone !== 'UTC') {
    const zone = zoneNamed(timezone);
    if (zone === undefined) return undefined;
    if (nowMs < zone.fromMs || nowMs >= zone.untilMs) readOffset(zone, nowMs);
    wallMs += zone.offsetMs;
  }
  const minute = Math.floor(wallMs / MINUTE_MS) + EPOCH_MINUTE_OF_WEEK;
  const ofWeek = minute % WEEK_MINUTES;
  return ofWeek < 0 ? ofWeek + WEEK_MINUTES : ofWeek;
}

/** The minute of the day, 0 to 1439. */
export function minuteOfDay(weekMinute: number): number {
  return weekMinute % DAY_MINUTES;
}

/** The day, 0 = Monday. */
export function dayOfWeek(weekMinute: number): number {
  return Math.floor(weekMinute / DAY_MINUTES);
}

const HH_MM = /^(?:[01][0-9]|2[0-3]):[0-5][0-9]$/;

/** Returns the minute of the day that `HH:MM` (00:00 to 23:59) begins; undefined for any other text. */
export function parseTimeOfDay(text: string): number | undefined {
  return HH_MM.test(text) ? Number(text.slice(0, 2)) * 60 + Number(text.slice(3)) : undefined;
}

/** Returns the minute of the day at which a span ends: a time of day, or `24:00` for the end of the day; undefined for any other text. */
export function parseEndOfSpan(text: string): number | undefined {
  return text === '24:00' ? DAY_MINUTES : parseTimeOfDay(text);
}

/** Writes the time of day of a minute of the week: `22:30`. */
export function timeText(weekMinute: number): string {
  const ofDay = minuteOfDay(weekMinute);
  const twoDigits = (value: number) => String(value).padStart(2, '0');
  return `${twoDigits(Math.floor(ofDay / 60))}:${twoDigits(ofDay % 60)}`;
}
