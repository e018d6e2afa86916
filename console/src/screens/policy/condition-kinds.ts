/**
 * The conditions that the editor knows. An entry has everything about one condition except its words, which are in
 * `text/en/policies.ts`, and its control, which is in `conditions.tsx`.
 */

import type { PolicyConditions } from '../../../../client/index.ts';
import { summary as text, policies as words } from '../../text/en/policies.ts';
import { hoursOf, isWindow, timeOf } from './hours.ts';
import { isNetwork } from './networks.ts';
import { list, type Piece, plain, strong } from './pieces.ts';

export type ConditionKind = Exclude<keyof PolicyConditions, 'timezone'>;

type OperatorOf<Kind extends ConditionKind> = keyof NonNullable<PolicyConditions[Kind]>;

interface ConditionEntry<Operator> {
  /** The operator that holds if the operand contains the value, and its negation. */
  readonly is: Operator;
  readonly isNot: Operator;
  /** True if the condition depends on a time zone. */
  readonly usesClock: boolean;
  /** The initial clause of a new condition. */
  readonly start: { readonly is: boolean; readonly operand: readonly string[] };
  /** Returns the error of one entry of an operand; undefined: it is valid. */
  readonly entryFault: (entry: string, isEnd: boolean) => string | undefined;
  /** Returns the error of an operand as a whole that is not empty; undefined: it is valid. */
  readonly fault: (operand: readonly string[]) => string | undefined;
  /** The clause in a policy's sentence. */
  readonly pieces: (is: boolean, operand: readonly string[]) => readonly Piece[];
}

/** Most windows of `weekly_hours`: a grid has at most 12 runs of hours in each day. */
const MAX_WINDOWS = 84;

const during = (is: boolean): Piece => plain(` ${is ? text.during : text.outside} `);

/** The whole week and no time at all have texts of their own. */
function hoursPieces(is: boolean, windows: readonly string[]): readonly Piece[] {
  const hours = hoursOf(windows);
  if (hours?.every(Boolean)) return [plain(' '), strong(is ? text.always : text.never)];
  return [during(is), ...(windows.length === 0 ? [strong(text.noHours)] : list(windows))];
}

/** In the order in which a policy's conditions are shown. */
export const CONDITIONS: { readonly [Kind in ConditionKind]: ConditionEntry<OperatorOf<Kind>> } = {
  weekly_hours: {
    is: 'in',
    isNot: 'not_in',
    usesClock: true,
    start: { is: false, operand: ['Mon-Fri 08:00-18:00'] },
    entryFault: (entry) => (isWindow(entry) ? undefined : words.faults.window),
    fault: (operand) => (operand.length > MAX_WINDOWS ? words.faults.manyWindows : undefined),
    pieces: hoursPieces,
  },
  day_of_week: {
    is: 'in',
    isNot: 'not_in',
    usesClock: true,
    start: { is: true, operand: ['Sat', 'Sun'] },
    entryFault: () => undefined,
    fault: () => undefined,
    pieces: (is, operand) => [plain(` ${is ? text.onDays : text.notOnDays} `), ...list(operand)],
  },
  time: {
    is: 'between',
    isNot: 'not_between',
    usesClock: true,
    start: { is: true, operand: ['22:00', '06:00'] },
    entryFault: (entry, isEnd) => (timeOf(entry, isEnd) === undefined ? words.faults.time : undefined),
    fault: ([start, end, ...more]) =>
      end === undefined || start === end || more.length > 0 ? words.faults.sameTimes : undefined,
    pieces: (is, [start = '?', end = '?']) => [during(is), strong(`${start}-${end}`)],
  },
  ip_address: {
    is: 'in',
    isNot: 'not_in',
    usesClock: false,
    start: { is: false, operand: [] },
    entryFault: (entry) => (isNetwork(entry) ? undefined : words.faults.network),
    fault: () => undefined,
    pieces: (is, operand) => [
      plain(` ${is ? text.from : text.fromOutside} `),
      ...(operand.length > 2 ? [strong(text.networks(operand.length))] : list(operand)),
    ],
  },
};

export const CONDITION_KINDS: readonly ConditionKind[] = Object.keys(CONDITIONS).filter(isConditionKind);

/** A newer server may have stored conditions that this console does not know. */
export function isConditionKind(member: string): member is ConditionKind {
  return Object.hasOwn(CONDITIONS, member);
}
