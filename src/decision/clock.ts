/** Wall clocks of time zones. An hour that daylight saving repeats occurs twice. */

const MINUTE_MS = 60_000;
export const DAY_MINUTES = 1440;
export const WEEK_MINUTES = 7 * DAY_MINUTES;
/** The epoch was a Thursday; weeks start on Monday. */
const EPOCH_MINUTE_OF_WEEK = 3 * DAY_MINUTES;
/** The last instant a Date can hold (ECMA-262, section 21.4.1.1). */
const MAX_INSTANT_MS = 8.64e15;
const NANOSECONDS_PER_MS = 1e6;

const ZONE_NAME = /^[A-Za-z][A-Za-z0-9_+/-]{0,63}$/;
/**
 * Zone names are not case-sensitive, and there are about six hundred zones, so requests cannot make this map grow
 * further.
 */
const zones = new Map<string, Zone>();

/** A zone and its offset from UTC between two of its transitions. */
interface Zone {
  readonly name: string;
  offsetMs: number;
  /** Milliseconds since the epoch; the end is excluded. Empty before the first use. */
  fromMs: number;
  untilMs: number;
}

/** Zones by the texts of policies and tenants, which may be many. */
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

/**
 * Reports whether the text names a zone of the IANA time zone database that this process knows. Offsets (`+01:00`) are
 * no names.
 */
export function isTimezone(text: string): boolean {
  return zoneNamed(text) !== undefined;
}

/** Returns the canonical spelling of a zone, so that equal zones have equal texts. An unknown name stays as it is. */
export function spelledTimezone(text: string): string {
  return zoneNamed(text)?.name ?? text;
}

/** Reads the offset of the zone at an instant, and the interval in which the zone has it. */
function readOffset(zone: Zone, nowMs: number): void {
  const there = Temporal.Instant.fromEpochMilliseconds(Math.floor(nowMs)).toZonedDateTimeISO(zone.name);
  zone.offsetMs = there.offsetNanoseconds / NANOSECONDS_PER_MS;
  // A transition at this instant is the next one of the instant before.
  zone.fromMs = there.add({ milliseconds: 1 }).getTimeZoneTransition('previous')?.epochMilliseconds ?? -MAX_INSTANT_MS;
  zone.untilMs = there.getTimeZoneTransition('next')?.epochMilliseconds ?? Number.POSITIVE_INFINITY;
}

/**
 * Returns the minute of the week (0 = Monday 00:00) on the wall clock of a zone.
 * @returns undefined if the zone is unknown or the instant is invalid
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

/** Returns the minute of the day, 0 to 1439. */
export function minuteOfDay(weekMinute: number): number {
  return weekMinute % DAY_MINUTES;
}

/** Returns the day of a minute of the week, 0 = Monday. */
export function dayOfWeek(weekMinute: number): number {
  return Math.floor(weekMinute / DAY_MINUTES);
}

const HH_MM = /^(?:[01][0-9]|2[0-3]):[0-5][0-9]$/;

/** Returns the minute of the day that `HH:MM` (00:00 to 23:59) begins; undefined for any other text. */
export function parseTimeOfDay(text: string): number | undefined {
  return HH_MM.test(text) ? Number(text.slice(0, 2)) * 60 + Number(text.slice(3)) : undefined;
}

/**
 * Returns the minute of the day at which a span ends: a time of day, or `24:00` for the end of the day; undefined for
 * any other text.
 */
export function parseEndOfSpan(text: string): number | undefined {
  return text === '24:00' ? DAY_MINUTES : parseTimeOfDay(text);
}

/** Writes the time of day of a minute of the week: `22:30`. */
export function timeText(weekMinute: number): string {
  const ofDay = minuteOfDay(weekMinute);
  const twoDigits = (value: number) => String(value).padStart(2, '0');
  return `${twoDigits(Math.floor(ofDay / 60))}:${twoDigits(ofDay % 60)}`;
}
