/**
 * The week grid and the windows of `weekly_hours`: 7 x 24 cells on one side, texts such as `Mon-Fri 08:00-18:00` on the
 * other.
 */

export const DAYS = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'] as const;
const DAY_NAMES: readonly string[] = DAYS;

export const DAY_HOURS = 24;
export const WEEK_HOURS = DAYS.length * DAY_HOURS;

/** One value for each hour of the week: `hours[day * 24 + hour]`, Monday first. True: the cell is lit. */
export type Hours = readonly boolean[];

export const NO_HOURS: Hours = new Array<boolean>(WEEK_HOURS).fill(false);

const WINDOW = /^(\w{3})(?:-(\w{3}))? (\d\d:\d\d)-(\d\d:\d\d)$/;
const TIME = /^(?:[01]\d|2[0-3]):[0-5]\d$/;
const HOUR_MINUTES = 60;

/** A window, as read. */
interface Window {
  /** 0 = Monday. */
  readonly first: number;
  /** 1 to 7. */
  readonly days: number;
  /** Minutes of the day; the end may be 1440, and is before the start if the window ends on the next day. */
  readonly start: number;
  readonly end: number;
}

/**
 * Returns the minute of the day that `HH:MM` begins; undefined for any other text. `24:00` is the end of a day only.
 */
export function timeOf(text: string, isEnd: boolean): number | undefined {
  if (isEnd && text === '24:00') return DAY_HOURS * HOUR_MINUTES;
  return TIME.test(text) ? Number(text.slice(0, 2)) * HOUR_MINUTES + Number(text.slice(3)) : undefined;
}

function windowOf(text: string): Window | undefined {
  const [, from = '', to = '', begins = '', ends = ''] = WINDOW.exec(text) ?? [];
  const first = dayIndex(from);
  const last = to === '' ? first : dayIndex(to);
  const start = timeOf(begins, false);
  const end = timeOf(ends, true);
  if (first < 0 || last < 0 || to === from || start === undefined || end === undefined || start === end)
    return undefined;
  return { first, days: ((last - first + DAYS.length) % DAYS.length) + 1, start, end };
}

function dayIndex(name: string): number {
  return DAY_NAMES.indexOf(name);
}

/** Reports whether the server takes the text as a window. */
export function isWindow(text: string): boolean {
  return windowOf(text) !== undefined;
}

/**
 * Returns the cells that the windows light; undefined if one of them cannot be read or does not begin and end at a full
 * hour.
 */
export function hoursOf(windows: readonly string[]): Hours | undefined {
  const hours = [...NO_HOURS];
  for (const text of windows) {
    const window = windowOf(text);
    if (window === undefined || window.start % HOUR_MINUTES !== 0 || window.end % HOUR_MINUTES !== 0) return undefined;
    const start = window.start / HOUR_MINUTES;
    const end = window.end / HOUR_MINUTES;
    const length = start < end ? end - start : end - start + DAY_HOURS;
    for (let day = window.first; day < window.first + window.days; day++) {
      for (let hour = start; hour < start + length; hour++) hours[(day * DAY_HOURS + hour) % WEEK_HOURS] = true;
    }
  }
  return hours;
}

/** Lit hours in a row that begin on one day. An end of more than 24 is on the next day. */
interface Run {
  readonly day: number;
  readonly start: number;
  readonly end: number;
}

/**
 * Writes lit cells as windows: equal hours of consecutive days are one window, and hours over midnight belong to the
 * day on which they begin. At most 84 windows, the earliest first; none if no cell is lit.
 */
export function windowsOf(hours: Hours): readonly string[] {
  const daysOf = new Map<string, boolean[]>();
  for (const { day, start, end } of runsOf(hours)) {
    const span = `${clock(start)}-${clock(end > DAY_HOURS ? end - DAY_HOURS : end)}`;
    const days = daysOf.get(span) ?? DAYS.map(() => false);
    days[day] = true;
    daysOf.set(span, days);
  }
  return [...daysOf]
    .flatMap(([span, days]) => rangesOf(days).map(({ first, text }) => ({ first, span, text: `${text} ${span}` })))
    .sort((left, right) => left.first - right.first || left.span.localeCompare(right.span))
    .map(({ text }) => text);
}

function runsOf(hours: Hours): readonly Run[] {
  const runs: Run[] = [];
  for (const day of DAYS.keys()) {
    for (let hour = 0; hour < DAY_HOURS; hour++) {
      const end = endOfRun(hours, day, hour);
      if (end === hour) continue;
      runs.push({ day, start: hour, end });
      hour = end;
    }
  }
  const byStart = new Map(runs.map((run) => [run.day * DAY_HOURS + run.start, run]));
  const next = ({ day, start, end }: Run): Run | undefined => {
    const morning = end === DAY_HOURS ? byStart.get(((day + 1) * DAY_HOURS) % WEEK_HOURS) : undefined;
    // A window lasts less than a day; longer hours read better as whole days with what stands before and after them.
    return morning !== undefined && morning.end < start ? morning : undefined;
  };
  const mornings = new Set(runs.map(next));
  return runs.flatMap((run) => (mornings.has(run) ? [] : [{ ...run, end: run.end + (next(run)?.end ?? 0) }]));
}

/** The hour, up to 24, at which the lit hours from `hour` on end; `hour` itself if it is dark. */
function endOfRun(hours: Hours, day: number, hour: number): number {
  let end = hour;
  while (end < DAY_HOURS && hours[day * DAY_HOURS + end] === true) end++;
  return end;
}

/** Days in a row, Monday after Sunday, each as `Mon` or `Fri-Mon`. */
function rangesOf(days: readonly boolean[]): readonly { readonly first: number; readonly text: string }[] {
  if (days.every(Boolean)) return [{ first: 0, text: `${DAYS[0]}-${DAYS[6]}` }];
  const isIn = (day: number): boolean => days[(day + DAYS.length) % DAYS.length] === true;
  return [...DAYS.keys()]
    .filter((day) => isIn(day) && !isIn(day - 1))
    .map((first) => {
      let last = first;
      while (isIn(last + 1)) last++;
      const name = DAYS[first] ?? '';
      return { first, text: last === first ? name : `${name}-${DAYS[last % DAYS.length]}` };
    });
}

function clock(hour: number): string {
  return `${String(hour).padStart(2, '0')}:00`;
}

/** A cell, or with -1 the whole day, the hour of all days, or the whole week. */
export interface Place {
  /** 0 = Monday; -1: all days. */
  readonly day: number;
  /** 0 to 23; -1: all hours. */
  readonly hour: number;
}

/** Reports whether a cell is in the rectangle of two places. */
export function isBetween({ day, hour }: Place, one: Place, other: Place): boolean {
  return isWithin(day, one.day, other.day) && isWithin(hour, one.hour, other.hour);
}

/** A whole day or hour on either side makes the rectangle as long as the grid. */
function isWithin(index: number, one: number, other: number): boolean {
  return one < 0 || other < 0 || (index >= Math.min(one, other) && index <= Math.max(one, other));
}

/** Lights or darkens all cells of the rectangle of two places. */
export function filled(hours: Hours, one: Place, other: Place, isLit: boolean): Hours {
  return hours.map((was, index) => (isBetween(placeOf(index), one, other) ? isLit : was));
}

/** Reports whether all cells of the rectangle are lit. */
export function areLit(hours: Hours, one: Place, other: Place): boolean {
  return hours.every((isLit, index) => isLit || !isBetween(placeOf(index), one, other));
}

function placeOf(index: number): Place {
  return { day: Math.floor(index / DAY_HOURS), hour: index % DAY_HOURS };
}

/** Returns the cell that the clock of the zone shows at an instant; undefined if the zone is unknown. */
export function placeAt(time: Date, zone: string): Place | undefined {
  try {
    const parts = new Intl.DateTimeFormat('en-GB', {
      timeZone: zone,
      weekday: 'short',
      hour: '2-digit',
      hourCycle: 'h23',
    });
    const shown = Object.fromEntries(parts.formatToParts(time).map(({ type, value }) => [type, value]));
    return { day: dayIndex(shown['weekday'] ?? ''), hour: Number(shown['hour']) };
  } catch {
    return undefined;
  }
}
