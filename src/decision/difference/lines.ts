/**
 * Axes whose values are in one order, cut into intervals at the constants of the rules: the addresses of clients, and
 * the minutes of the week on the wall clock of one time zone.
 */

import { DAY_NAMES } from '../../domain/records.ts';
import { type Address, addressAt, addressPosition, FIRST_IPV6, LAST_POSITION, networkBorders } from '../address.ts';
import { DAY_MINUTES, WEEK_MINUTES } from '../clock.ts';
import { bitsOf, positionsOf } from './masks.ts';

/** A run of values: the end is excluded. */
interface ValueRun {
  readonly start: bigint;
  readonly end: bigint;
}

/** Intervals between borders, in order. */
export class Line {
  /** The first value of each interval. */
  readonly starts: readonly bigint[];
  readonly #end: bigint;

  constructor(borders: Iterable<bigint>, end: bigint) {
    const inside = [...new Set([0n, ...borders])].filter((border) => border < end);
    this.starts = inside.sort((a, b) => (a < b ? -1 : 1));
    this.#end = end;
  }

  get all(): bigint {
    return (1n << BigInt(this.starts.length)) - 1n;
  }

  indexOf(value: bigint): number {
    let low = 0;
    let high = this.starts.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.starts[middle] ?? this.#end) <= value) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  /** Returns the intervals whose first value passes a test that no value inside an interval changes. */
  maskWhere(holds: (start: bigint) => boolean): bigint {
    return bitsOf(this.starts.flatMap((start, index) => (holds(start) ? [index] : [])));
  }

  spansOf(mask: bigint): readonly ValueRun[] {
    const spans: ValueRun[] = [];
    for (const index of positionsOf(mask & this.all)) {
      const start = this.starts[index] ?? 0n;
      const end = this.starts[index + 1] ?? this.#end;
      const last = spans.at(-1);
      if (last?.end === start) spans[spans.length - 1] = { start: last.start, end };
      else spans.push({ start, end });
    }
    return spans;
  }
}

/** IPv4-mapped IPv6 addresses are IPv4 addresses, so no client has one of these. */
const MAPPED = networkBorders('::/96').map((border) => border + (0xffffn << 32n));
/** Addresses that read well in examples. */
const EXAMPLES: readonly bigint[] = [0xc0000201n, 0x0a000001n];

export class AddressAxis {
  readonly all: bigint;
  readonly #line: Line;
  readonly #missing: bigint;

  constructor(borders: Iterable<bigint>) {
    this.#line = new Line([...borders, ...MAPPED, FIRST_IPV6], LAST_POSITION);
    this.#missing = 1n << BigInt(this.#line.starts.length);
    const mapped = 1n << BigInt(this.#line.indexOf(MAPPED[0] ?? 0n));
    this.all = (this.#line.all & ~mapped) | this.#missing;
  }

  /** @param holds a test of the text of an address; undefined: missing */
  maskWhere(holds: (address: string | undefined) => boolean): bigint {
    const present = this.#line.maskWhere((start) => holds(addressAt(start)));
    return (present | (holds(undefined) ? this.#missing : 0n)) & this.all;
  }

  classOf(address: Address | undefined): bigint {
    return address === undefined ? this.#missing : 1n << BigInt(this.#line.indexOf(addressPosition(address)));
  }

  /** Returns an address of a set; undefined if only a missing address is in it. */
  witness(mask: bigint): string | undefined {
    const spans = this.#line.spansOf(mask & this.all);
    const inside = (position: bigint) => spans.some(({ start, end }) => start <= position && position < end);
    const example = EXAMPLES.find(inside);
    const [first] = spans;
    if (example !== undefined) return addressAt(example);
    if (first === undefined) return undefined;
    return addressAt(inside(first.start + 1n) ? first.start + 1n : first.start);
  }

  /** Describes a set as CIDR blocks and `missing`; undefined = all. */
  describe(mask: bigint): readonly string[] | undefined {
    if (mask === this.all) return undefined;
    // The addresses that no client has are left in a run on both of whose sides others are.
    const mapped = this.#line.all & ~this.all;
    const around = [mapped << 1n, mapped >> 1n].every((one) => (mask & one) !== 0n);
    const blocks = this.#line.spansOf((mask & ~this.#missing) | (around ? mapped : 0n)).flatMap(blocksOf);
    return (mask & this.#missing) === 0n ? blocks : [...blocks, 'missing'];
  }
}

/** Returns the largest blocks that a run of addresses consists of. */
function blocksOf({ start, end }: ValueRun): readonly string[] {
  if (start < FIRST_IPV6 && end > FIRST_IPV6)
    return [...blocksOf({ start, end: FIRST_IPV6 }), ...blocksOf({ start: FIRST_IPV6, end })];
  const [origin, width] = start < FIRST_IPV6 ? [0n, 32n] : [FIRST_IPV6, 128n];
  const blocks: string[] = [];
  for (let at = start - origin, left = end - start; left > 0n; ) {
    let bits = 0n;
    while (bits < width && at % (2n << bits) === 0n && 2n << bits <= left) bits++;
    const address = addressAt(at + origin);
    blocks.push(bits === 0n ? address : `${address}/${width - bits}`);
    at += 1n << bits;
    left -= 1n << bits;
  }
  return blocks;
}

/** Minutes of the week; the end is excluded. */
type MinuteRun = readonly [start: number, end: number];

export class ClockAxis {
  readonly timezone: string;
  readonly #line: Line;

  constructor(timezone: string, borders: Iterable<bigint>) {
    this.timezone = timezone;
    this.#line = new Line(borders, BigInt(WEEK_MINUTES));
  }

  get all(): bigint {
    return this.#line.all;
  }

  /** @param holds a test of a minute of the week */
  maskWhere(holds: (minute: number) => boolean): bigint {
    return this.#line.maskWhere((start) => holds(Number(start)));
  }

  classOf(minute: number): bigint {
    return 1n << BigInt(this.#line.indexOf(BigInt(minute)));
  }

  runsOf(mask: bigint): readonly MinuteRun[] {
    return this.#line.spansOf(mask).map(({ start, end }) => [Number(start), Number(end)]);
  }

  describe(mask: bigint): readonly string[] {
    return weeklyWindows(this.runsOf(mask));
  }
}

/** Returns the minutes from one minute of the week to the next one in the runs; 0 if it is in one of them. */
export function minutesUntil(runs: readonly MinuteRun[], minute: number): number {
  let least = WEEK_MINUTES;
  for (const [start, end] of runs) {
    if (start <= minute && minute < end) return 0;
    least = Math.min(least, (start - minute + WEEK_MINUTES) % WEEK_MINUTES);
  }
  return least;
}

/** Writes runs of minutes of the week as windows of the condition `weekly_hours`. */
function weeklyWindows(runs: readonly MinuteRun[]): readonly string[] {
  const days = new Map<string, Set<number>>();
  const add = (day: number, start: number, end: number) => {
    const hours = `${clockText(start)}-${clockText(end)}`;
    days.getOrInsertComputed(hours, () => new Set()).add(day % DAY_NAMES.length);
  };
  for (const [start, end] of acrossWeekEnd(runs)) {
    const firstDay = Math.floor(start / DAY_MINUTES);
    const nextMidnight = (firstDay + 1) * DAY_MINUTES;
    if (end > nextMidnight && end - start < DAY_MINUTES) {
      add(firstDay, start % DAY_MINUTES, end - nextMidnight);
      continue;
    }
    for (let from = start; from < end; ) {
      const day = Math.floor(from / DAY_MINUTES);
      const to = Math.min(end, (day + 1) * DAY_MINUTES);
      add(day, from - day * DAY_MINUTES, to - day * DAY_MINUTES);
      from = to;
    }
  }
  return [...days].flatMap(([hours, list]) => dayRanges(list).map((range) => `${range} ${hours}`));
}

/** Joins a run that ends with the week and one that begins with it. */
function acrossWeekEnd(runs: readonly MinuteRun[]): readonly MinuteRun[] {
  const [first] = runs;
  const last = runs.at(-1);
  if (first === undefined || last === undefined || first === last) return runs;
  if (first[0] !== 0 || last[1] !== WEEK_MINUTES) return runs;
  return [...runs.slice(1, -1), [last[0], WEEK_MINUTES + first[1]]];
}

function clockText(minute: number): string {
  return [Math.floor(minute / 60), minute % 60].map((part) => String(part).padStart(2, '0')).join(':');
}

/** Writes days as ranges; a range may cross the end of the week. */
function dayRanges(days: ReadonlySet<number>): readonly string[] {
  const count = DAY_NAMES.length;
  if (days.size === count) return [`${DAY_NAMES[0]}-${DAY_NAMES[count - 1]}`];
  const ranges: string[] = [];
  for (const first of [...days].sort((a, b) => a - b)) {
    if (days.has((first + count - 1) % count)) continue;
    let length = 1;
    while (days.has((first + length) % count)) length++;
    const last = DAY_NAMES[(first + length - 1) % count];
    ranges.push(length === 1 ? `${last}` : `${DAY_NAMES[first]}-${last}`);
  }
  return ranges;
}
