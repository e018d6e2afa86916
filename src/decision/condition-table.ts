/**
 * The conditions that a policy may have. One entry is everything about one condition: its operators, its input, how an
 * operand is compiled, validated and shown, its schema, and its memory. Evaluation, validation, explanations, the
 * description of the API, setup files and the limits of the cache follow from this table.
 */

import { DAY_NAMES } from '../domain/records.ts';
import { type Address, inNetwork, type Network, networkBorders, parseAddress, parseNetwork } from './address.ts';
import {
  DAY_MINUTES,
  dayOfWeek,
  minuteOfDay,
  minuteOfWeek,
  parseEndOfSpan,
  parseTimeOfDay,
  timeText,
  WEEK_MINUTES,
} from './clock.ts';
import { MAX_ENTRIES, MAX_WEEKLY_WINDOWS } from './limits.ts';
import { compileWeeklyHours, inWeeklyHours, parseWeeklyWindow } from './weekly-hours.ts';

export interface ConditionInputs {
  readonly nowMs: number;
  readonly clientAddress: string | undefined;
  /** The effective tenant's time zone. */
  readonly timezone: string | undefined;
  /** The client's address, parsed by the first condition that needs it; null = not parsed yet. */
  parsedAddress: Address | undefined | null;
}

/** Reports whether a check holds; undefined = its input is missing. */
export type Test = (inputs: ConditionInputs, timezone: string | undefined) => boolean | undefined;

/** A JSON schema of one operand: a list of texts. */
interface OperandSchema {
  readonly items: { readonly enum?: readonly string[]; readonly [keyword: string]: unknown };
  readonly minItems: number;
  readonly maxItems: number;
  readonly [keyword: string]: unknown;
}

interface ConditionParts<Operator extends string, Input> {
  /** The operator that holds if the operand contains the input, and its negation. */
  readonly operators: readonly [plain: Operator, negation: Operator];
  /** True if the input depends on the time zone of the policy or tenant. */
  readonly usesClock: boolean;
  /** Returns what operands are compared with; undefined if it is missing. */
  readonly input: (inputs: ConditionInputs, timezone: string | undefined) => Input | undefined;
  /** Writes the input for an explanation. */
  readonly inputText: (input: Input, inputs: ConditionInputs) => string | undefined;
  /** Compiles an operand to a predicate of inputs; undefined if this version cannot read the operand. */
  readonly compile: (operand: readonly string[]) => ((input: Input) => boolean) | undefined;
  /**
   * Returns the inputs from which on an operand may contain the input or no longer contain it: positions of addresses
   * (`addressPosition`), or minutes of the week.
   */
  readonly borders: (operand: readonly string[]) => readonly bigint[];
  /** Reports whether a text may be the entry of an operand at an index. */
  readonly accepts: (entry: string, index: number) => boolean;
  readonly expectation: string;
  /** Returns the message for an operand whose entries are all accepted; undefined = it is valid. */
  readonly fault: (operand: readonly string[]) => string | undefined;
  readonly maxEntries: number;
  readonly description: string;
  readonly schema: OperandSchema;
  readonly bytes: (operand: readonly string[]) => number;
}

type FollowsFromParts = 'input' | 'inputText' | 'compile';

export interface Condition<Operator extends string = string>
  extends Omit<ConditionParts<Operator, unknown>, FollowsFromParts> {
  /** Returns the input as an explanation shows it: the client's address, `22:30`, `Sat`; undefined if it is missing. */
  readonly shownInput: (inputs: ConditionInputs, timezone: string | undefined) => string | undefined;
  /** Returns undefined if this version cannot read the operand. */
  readonly compileTest: (operand: readonly string[], negated: boolean) => Test | undefined;
}

function condition<const Operator extends string, Input>(parts: ConditionParts<Operator, Input>): Condition<Operator> {
  const { input: inputOf, inputText, compile, ...shared } = parts;
  return {
    ...shared,
    shownInput(inputs, timezone) {
      const input = inputOf(inputs, timezone);
      return input === undefined ? undefined : inputText(input, inputs);
    },
    compileTest(operand, negated) {
      const contains = compile(operand);
      return (
        contains &&
        ((inputs, timezone) => {
          const input = inputOf(inputs, timezone);
          return input === undefined ? undefined : contains(input) !== negated;
        })
      );
    },
  };
}

/** Returns the time zone whose wall clock conditions use: the policy's, otherwise the tenant's, otherwise UTC. */
export function zoneOf(timezone: string | undefined, inputs: ConditionInputs): string {
  return timezone ?? inputs.timezone ?? 'UTC';
}

function addressOf(inputs: ConditionInputs): Address | undefined {
  if (inputs.parsedAddress === null)
    inputs.parsedAddress = inputs.clientAddress === undefined ? undefined : parseAddress(inputs.clientAddress);
  return inputs.parsedAddress;
}

const clock = {
  usesClock: true,
  /** The minute of the week. */
  input: (inputs: ConditionInputs, timezone: string | undefined) =>
    minuteOfWeek(zoneOf(timezone, inputs), inputs.nowMs),
} as const;

function notEmpty(operand: readonly string[]): string | undefined {
  return operand.length === 0 ? 'must not be empty' : undefined;
}

const DAYS: readonly string[] = DAY_NAMES;
const dayName = (weekMinute: number) => DAYS[dayOfWeek(weekMinute)];

function compileNetworks(operand: readonly string[]): ((address: Address) => boolean) | undefined {
  const networks: Network[] = [];
  for (const text of operand) {
    const network = parseNetwork(text);
    if (network === undefined) return undefined;
    networks.push(network);
  }
  if (networks.length === 0) return undefined;
  return (address) => {
    for (const network of networks) if (inNetwork(address, network)) return true;
    return false;
  };
}

/** The start is included, the end is not. A span whose start is after its end crosses midnight. */
function compileSpan(operand: readonly string[]): ((weekMinute: number) => boolean) | undefined {
  const start = parseTimeOfDay(operand[0] ?? '');
  const end = parseEndOfSpan(operand[1] ?? '');
  if (start === undefined || end === undefined || start === end || operand.length !== 2) return undefined;
  return (weekMinute) => {
    const minute = minuteOfDay(weekMinute);
    return start < end ? minute >= start && minute < end : minute >= start || minute < end;
  };
}

function compileDays(operand: readonly string[]): ((weekMinute: number) => boolean) | undefined {
  let days = 0;
  for (const name of operand) {
    const index = DAYS.indexOf(name);
    if (index < 0) return undefined;
    days |= 1 << index;
  }
  return days === 0 ? undefined : (weekMinute) => ((days >> dayOfWeek(weekMinute)) & 1) === 1;
}

/** Returns the minutes of the week at which these minutes of the day begin. */
function dailyBorders(minutes: readonly number[]): readonly bigint[] {
  return DAYS.flatMap((_, day) => minutes.map((minute) => BigInt((day * DAY_MINUTES + minute) % WEEK_MINUTES)));
}

function compileHours(operand: readonly string[]): ((weekMinute: number) => boolean) | undefined {
  const hours = compileWeeklyHours(operand);
  return hours && ((weekMinute) => inWeeklyHours(hours, weekMinute));
}

/** Estimated bytes of an operand whose few different texts are each stored once. */
export const ENTRY_BYTES = 16;
const NETWORK_BYTES = 272;
/** The compiled hours of one operand, beside its windows. */
const HOURS_BYTES = 512;
/** One window: its text and its minutes of the week. */
const WINDOW_BYTES = 96;

const TIME_OF_DAY = '([01][0-9]|2[0-3]):[0-5][0-9]';
const END_OF_SPAN = `(${TIME_OF_DAY}|24:00)`;
const DAY = `(${DAY_NAMES.join('|')})`;
/** `<days> <start>-<end>`: a range names two different days, and the start and the end differ. */
const WEEKLY_WINDOW = `^(?!(.{3})-\\1)(?!.* (.{5})-\\2)${DAY}(-${DAY})? ${TIME_OF_DAY}-${END_OF_SPAN}$`;

/** In the order in which a policy's conditions are checked and shown. */
export const CONDITIONS = {
  ip_address: condition({
    operators: ['in', 'not_in'],
    usesClock: false,
    input: addressOf,
    inputText: (_address, { clientAddress }) => clientAddress,
    compile: compileNetworks,
    borders: (operand) => operand.flatMap((text) => networkBorders(text)),
    accepts: (entry) => parseNetwork(entry) !== undefined,
    expectation: 'must be an IP address or CIDR block without host bits, leading zeros or zone id',
    fault: notEmpty,
    maxEntries: MAX_ENTRIES,
    description: "Addresses and CIDR blocks that the client's address is compared with.",
    schema: {
      type: 'array',
      items: {
        type: 'string',
        description: 'An address or a CIDR block without host bits, IPv4 or IPv6.',
        examples: ['10.0.0.0/8'],
      },
      minItems: 1,
      maxItems: MAX_ENTRIES,
    },
    bytes: (operand) => operand.reduce((bytes, text) => bytes + NETWORK_BYTES + 2 * text.length, 0),
  }),
  time: condition({
    operators: ['between', 'not_between'],
    ...clock,
    inputText: timeText,
    compile: compileSpan,
    borders: ([start = '', end = '']) => dailyBorders([parseTimeOfDay(start) ?? 0, parseEndOfSpan(end) ?? 0]),
    accepts: (entry, index) => (index === 0 ? parseTimeOfDay(entry) : parseEndOfSpan(entry)) !== undefined,
    expectation: 'must be HH:MM from 00:00 to 23:59 (an end may be 24:00)',
    fault: ([start, end, ...more]) =>
      end === undefined || start === end || more.length > 0 ? 'must have a start and an end that differ' : undefined,
    maxEntries: MAX_ENTRIES,
    description: 'Times of the day, in the time zone of the tenant.',
    schema: {
      type: 'array',
      items: { type: 'string', pattern: `^${END_OF_SPAN}$` },
      minItems: 2,
      maxItems: 2,
      uniqueItems: true,
      // Only the end may be 24:00.
      not: { type: 'array', prefixItems: [{ const: '24:00' }, {}], items: {}, minItems: 2, maxItems: 2 },
      examples: [['22:00', '06:00']],
    },
    bytes: (operand) => ENTRY_BYTES * operand.length,
  }),
  day_of_week: condition({
    operators: ['in', 'not_in'],
    ...clock,
    inputText: dayName,
    compile: compileDays,
    borders: () => dailyBorders([0]),
    accepts: (entry) => DAYS.includes(entry),
    expectation: `must be one of ${DAY_NAMES.join(', ')}`,
    fault: notEmpty,
    maxEntries: MAX_ENTRIES,
    description: 'Days of the week, in the time zone of the tenant.',
    schema: { type: 'array', items: { type: 'string', enum: DAY_NAMES }, minItems: 1, maxItems: MAX_ENTRIES },
    bytes: (operand) => ENTRY_BYTES * operand.length,
  }),
  weekly_hours: condition({
    operators: ['in', 'not_in'],
    ...clock,
    inputText: (weekMinute) => `${dayName(weekMinute)} ${timeText(weekMinute)}`,
    compile: compileHours,
    borders: (operand) => [...(compileWeeklyHours(operand) ?? [])].map(BigInt),
    accepts: (entry) => parseWeeklyWindow(entry) !== undefined,
    expectation:
      'must be days and a window, such as Mon-Fri 08:00-18:00 or Sat 22:00-02:00. The end may be 24:00 and must differ from the start',
    fault: notEmpty,
    maxEntries: MAX_WEEKLY_WINDOWS,
    description: 'Windows of the week, such as `Mon-Fri 08:00-18:00`, in the time zone of the tenant.',
    schema: {
      type: 'array',
      items: {
        type: 'string',
        pattern: WEEKLY_WINDOW,
        description:
          'Days and a window. The start is included, the end excluded; one that crosses midnight belongs to the day on which it starts.',
        examples: ['Mon-Fri 08:00-18:00', 'Sat 22:00-02:00', 'Sun 20:00-24:00'],
      },
      minItems: 1,
      maxItems: MAX_WEEKLY_WINDOWS,
    },
    bytes: (operand) => HOURS_BYTES + WINDOW_BYTES * operand.length,
  }),
} as const satisfies Readonly<Record<string, Condition>>;

type ConditionKey = keyof typeof CONDITIONS;

type Operands<C> = C extends Condition<infer Operator> ? { readonly [O in Operator]?: readonly string[] } : never;

/** The conditions of one policy, as validated. All must hold. */
export type PolicyConditions = { readonly [Key in ConditionKey]?: Operands<(typeof CONDITIONS)[Key]> } & {
  /** A name of the IANA time zone database. */
  readonly timezone?: string;
};

const BY_KEY: ReadonlyMap<string, Condition> = new Map(Object.entries(CONDITIONS));

/** Returns the condition of a stored or requested member; undefined if this version has no such condition. */
export function conditionOf(key: string): Condition | undefined {
  return BY_KEY.get(key);
}

/** The members of a policy's conditions except `timezone`. */
export const CONDITION_KEYS: readonly string[] = Object.keys(CONDITIONS);
