/** Conditions of policies: the addresses, hours and days for which a policy is in force. All must hold, each evaluated separately. */

import { DAY_NAMES, type StoredConditions } from '../domain/records.ts';
import { type Address, inNetwork, type Network, parseAddress, parseNetwork } from './address.ts';
import {
  dayOfWeek,
  isTimezone,
  minuteOfDay,
  minuteOfWeek,
  parseEndOfSpan,
  parseTimeOfDay,
  spelledTimezone,
} from './clock.ts';
import { compileWeeklyHours, inWeeklyHours, type WeeklyHours } from './weekly-hours.ts';

/** One operator of one condition, compiled. */
export type Check =
  | {
      readonly kind: 'ip_address';
      readonly negated: boolean;
      readonly operand: readonly string[];
      readonly networks: readonly Network[];
    }
  | {
      readonly kind: 'time';
      readonly negated: boolean;
      readonly operand: readonly string[];
      /** Minutes of the day; the start is included, the end is not. */
      readonly start: number;
      readonly end: number;
    }
  | {
      readonly kind: 'day_of_week';
      readonly negated: boolean;
      readonly operand: readonly string[];
      /** Bit 0 = Monday. */
      readonly days: number;
    }
  | {
      readonly kind: 'weekly_hours';
      readonly negated: boolean;
      readonly operand: readonly string[];
      readonly hours: WeeklyHours;
    }
  /** Stored, but not readable. Treated as one whose input is missing, so that it never opens anything. */
  | { readonly kind: 'unreadable'; readonly key: string };

export interface CompiledConditions {
  /** Empty = always. */
  readonly checks: readonly Check[];
  /** Undefined: the effective tenant's, else UTC. */
  readonly timezone: string | undefined;
}

/** The circumstances of one request. */
export interface ConditionInputs {
  readonly nowMs: number;
  readonly clientAddress: string | undefined;
  /** The effective tenant's zone. */
  readonly timezone: string | undefined;
  /** The client's address once parsed, by the first condition that asks; null = not asked yet. */
  parsedAddress: Address | undefined | null;
}

export function conditionInputs(
  nowMs: number,
  clientAddress: string | undefined,
  timezone: string | undefined,
): ConditionInputs {
  return { nowMs, clientAddress, timezone, parsedAddress: null };
}

type ConditionKey = Exclude<Check['kind'], 'unreadable'>;

function unreadable(key: string): Check {
  return { kind: 'unreadable', key };
}

function addressCheck(negated: boolean, operand: readonly string[]): Check {
  const networks: Network[] = [];
  for (const text of operand) {
    const network = parseNetwork(text);
    if (network === undefined) return unreadable('ip_address');
    networks.push(network);
  }
  return networks.length === 0 ? unreadable('ip_address') : { kind: 'ip_address', negated, operand, networks };
}

function timeCheck(negated: boolean, operand: readonly string[]): Check {
  const start = parseTimeOfDay(operand[0] ?? '');
  const end = parseEndOfSpan(operand[1] ?? '');
  if (start === undefined || end === undefined || start === end || operand.length !== 2) return unreadable('time');
  return { kind: 'time', negated, operand, start, end };
}

const DAYS: readonly string[] = DAY_NAMES;

function dayCheck(negated: boolean, operand: readonly string[]): Check {
  let days = 0;
  for (const name of operand) {
    const index = DAYS.indexOf(name);
    if (index < 0) return unreadable('day_of_week');
    days |= 1 << index;
  }
  return days === 0 ? unreadable('day_of_week') : { kind: 'day_of_week', negated, operand, days };
}

function weeklyHoursCheck(negated: boolean, operand: readonly string[]): Check {
  const hours = compileWeeklyHours(operand);
  return hours === undefined ? unreadable('weekly_hours') : { kind: 'weekly_hours', negated, operand, hours };
}

/** The conditions that this version reads: each operator, and whether it negates. The checks of a policy are in this order. */
const OPERATORS: Readonly<
  Record<
    ConditionKey,
    {
      readonly negates: ReadonlyMap<string, boolean>;
      readonly check: (negated: boolean, operand: readonly string[]) => Check;
    }
  >
> = {
  ip_address: { negates: negatedBy('in', 'not_in'), check: addressCheck },
  time: { negates: negatedBy('between', 'not_between'), check: timeCheck },
  day_of_week: { negates: negatedBy('in', 'not_in'), check: dayCheck },
  weekly_hours: { negates: negatedBy('in', 'not_in'), check: weeklyHoursCheck },
};

function negatedBy(plain: string, negating: string): ReadonlyMap<string, boolean> {
  return new Map([
    [plain, false],
    [negating, true],
  ]);
}

const CONDITION_KEYS = ['ip_address', 'time', 'day_of_week', 'weekly_hours'] as const satisfies readonly ConditionKey[];
const KNOWN_KEYS: ReadonlySet<string> = new Set([...CONDITION_KEYS, 'timezone']);

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isTextList(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}

/** A condition without operators says nothing that this version understands, so it is unreadable too. */
function checksOf(key: ConditionKey, condition: unknown): readonly Check[] {
  const { negates, check } = OPERATORS[key];
  const operators = isObject(condition) ? Object.entries(condition).filter(([, operand]) => operand !== undefined) : [];
  if (operators.length === 0) return [unreadable(key)];
  return operators
    .map(([operator, operand]) => {
      const negated = negates.get(operator);
      return negated === undefined || !isTextList(operand) ? unreadable(key) : check(negated, operand);
    })
    .toSorted((left, right) => orderOf(left) - orderOf(right));
}

function keyOf(check: Check): string {
  return check.kind === 'unreadable' ? check.key : check.kind;
}

function orderOf(check: Check): number {
  return check.kind === 'unreadable' ? 2 : Number(check.negated);
}

/**
 * Compiles conditions as they are stored. Never throws: whatever this version cannot read (an unknown key or operator, an empty list, a
 * condition without operators, a value of another type) becomes an unreadable check, never no check.
 */
export function compileConditions(stored: StoredConditions): CompiledConditions {
  const conditions: Readonly<Record<string, unknown>> = { ...stored };
  const checks: Check[] = [];
  for (const key of CONDITION_KEYS) if (conditions[key] !== undefined) checks.push(...checksOf(key, conditions[key]));
  for (const key of Object.keys(conditions)) if (!KNOWN_KEYS.has(key)) checks.push(unreadable(key));
  const { timezone } = conditions;
  if (timezone === undefined) return { checks, timezone: undefined };
  if (typeof timezone === 'string' && isTimezone(timezone)) return { checks, timezone: spelledTimezone(timezone) };
  // Nobody knows what a wall clock shows in a zone that cannot be read.
  const withoutClock = checks.map((check) => (check.kind === 'ip_address' ? check : unreadable(keyOf(check))));
  return { checks: [...withoutClock, unreadable('timezone')], timezone: undefined };
}

function addressOf(now: ConditionInputs): Address | undefined {
  if (now.parsedAddress === null)
    now.parsedAddress = now.clientAddress === undefined ? undefined : parseAddress(now.clientAddress);
  return now.parsedAddress;
}

function inAny(address: Address, networks: readonly Network[]): boolean {
  for (const network of networks) if (inNetwork(address, network)) return true;
  return false;
}

function inSpan(minute: number, start: number, end: number): boolean {
  return start < end ? minute >= start && minute < end : minute >= start || minute < end;
}

/** Returns what one check is compared with: the client's address, `22:30`, `Sat`, `Sat 22:30`; undefined if that is missing. */
export function conditionInput(check: Check, timezone: string | undefined, now: ConditionInputs): string | undefined {
  if (check.kind === 'unreadable') return undefined;
  if (check.kind === 'ip_address') return addressOf(now) === undefined ? undefined : now.clientAddress;
  const minute = minuteOfWeek(zoneOf(timezone, now), now.nowMs);
  if (minute === undefined) return undefined;
  const day = DAY_NAMES[dayOfWeek(minute)];
  switch (check.kind) {
    case 'time':
      return timeText(minute);
    case 'day_of_week':
      return day;
    case 'weekly_hours':
      return `${day} ${timeText(minute)}`;
    default:
      return check satisfies never;
  }
}

function timeText(weekMinute: number): string {
  const ofDay = minuteOfDay(weekMinute);
  const twoDigits = (value: number) => String(value).padStart(2, '0');
  return `${twoDigits(Math.floor(ofDay / 60))}:${twoDigits(ofDay % 60)}`;
}

/** The zone whose wall clock conditions look at: the policy's, else the tenant's, else UTC. */
export function zoneOf(timezone: string | undefined, now: ConditionInputs): string {
  return timezone ?? now.timezone ?? 'UTC';
}

/** Whether one check holds; undefined when its input is missing. */
export function checkHolds(check: Check, timezone: string | undefined, now: ConditionInputs): boolean | undefined {
  switch (check.kind) {
    case 'ip_address': {
      const address = addressOf(now);
      return address === undefined ? undefined : inAny(address, check.networks) !== check.negated;
    }
    case 'time': {
      const minute = minuteOfWeek(zoneOf(timezone, now), now.nowMs);
      return minute === undefined ? undefined : inSpan(minuteOfDay(minute), check.start, check.end) !== check.negated;
    }
    case 'day_of_week': {
      const minute = minuteOfWeek(zoneOf(timezone, now), now.nowMs);
      return minute === undefined ? undefined : ((check.days >> dayOfWeek(minute)) & 1) === (check.negated ? 0 : 1);
    }
    case 'weekly_hours': {
      const minute = minuteOfWeek(zoneOf(timezone, now), now.nowMs);
      return minute === undefined ? undefined : inWeeklyHours(check.hours, minute) !== check.negated;
    }
    case 'unreadable':
      return undefined;
    default:
      return check satisfies never;
  }
}

/** A check whose input is missing holds for a deny and does not for an allow: what cannot be told never opens anything. */
export function conditionsHold(
  conditions: CompiledConditions,
  effect: 'allow' | 'deny',
  now: ConditionInputs,
): boolean {
  for (const check of conditions.checks) {
    if (!(checkHolds(check, conditions.timezone, now) ?? effect === 'deny')) return false;
  }
  return true;
}
