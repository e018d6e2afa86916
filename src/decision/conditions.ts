/** Compiles and evaluates the conditions of policies. All must hold, each evaluated separately. */

import { isObject } from '../domain/json.ts';
import type { StoredConditions } from '../domain/records.ts';
import { isTimezone, spelledTimezone } from './clock.ts';
import { CONDITIONS, type Condition, type ConditionInputs, conditionOf, type Test } from './condition-table.ts';

export interface ReadableCheck {
  readonly kind: 'readable';
  readonly key: string;
  readonly condition: Condition;
  readonly operator: string;
  readonly negated: boolean;
  readonly operand: readonly string[];
  readonly test: Test;
}

export type Check =
  | ReadableCheck
  /**
   * A stored condition that this version cannot read. It counts as one whose input is missing, so it never permits
   * anything.
   */
  | { readonly kind: 'unreadable'; readonly key: string };

export interface CompiledConditions {
  /** Empty = always. */
  readonly checks: readonly Check[];
  /** Undefined: the effective tenant's, otherwise UTC. */
  readonly timezone: string | undefined;
}

export function conditionInputs(
  nowMs: number,
  clientAddress: string | undefined,
  timezone: string | undefined,
): ConditionInputs {
  return { nowMs, clientAddress, timezone, parsedAddress: null };
}

function unreadable(key: string): Check {
  return { kind: 'unreadable', key };
}

function isTextList(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}

function checkOf(key: string, condition: Condition, operator: string, operand: unknown): Check {
  if (!condition.operators.includes(operator) || !isTextList(operand)) return unreadable(key);
  const negated = operator === condition.operators[1];
  const test = condition.compileTest(operand, negated);
  return test === undefined ? unreadable(key) : { kind: 'readable', key, condition, operator, negated, operand, test };
}

/** A condition without operators is unreadable too: it says nothing that this version understands. */
function checksOf(key: string, condition: Condition, stored: unknown): readonly Check[] {
  const operators = isObject(stored) ? Object.entries(stored).filter(([, operand]) => operand !== undefined) : [];
  if (operators.length === 0) return [unreadable(key)];
  return operators
    .map(([operator, operand]) => checkOf(key, condition, operator, operand))
    .toSorted((left, right) => orderOf(left) - orderOf(right));
}

function orderOf(check: Check): number {
  return check.kind === 'unreadable' ? 2 : Number(check.negated);
}

/**
 * Compiles conditions as they are stored. Never throws. Everything that this version cannot read (an unknown key or
 * operator, an empty list, a condition without operators, a value of another type) becomes an unreadable check and is
 * never left out.
 */
export function compileConditions(stored: StoredConditions): CompiledConditions {
  const { timezone, ...conditions }: Readonly<Record<string, unknown>> = stored;
  const checks: Check[] = [];
  for (const [key, condition] of Object.entries(CONDITIONS))
    if (conditions[key] !== undefined) checks.push(...checksOf(key, condition, conditions[key]));
  for (const key of Object.keys(conditions)) if (conditionOf(key) === undefined) checks.push(unreadable(key));
  if (timezone === undefined) return { checks, timezone: undefined };
  if (typeof timezone === 'string' && isTimezone(timezone)) return { checks, timezone: spelledTimezone(timezone) };
  // The wall clock of an unreadable zone is unknown.
  const withoutClock = checks.map((check) =>
    check.kind === 'readable' && check.condition.usesClock ? unreadable(check.key) : check,
  );
  return { checks: [...withoutClock, unreadable('timezone')], timezone: undefined };
}

/** Reports whether one check holds; undefined if its input is missing. */
export function checkHolds(check: Check, timezone: string | undefined, inputs: ConditionInputs): boolean | undefined {
  return check.kind === 'readable' ? check.test(inputs, timezone) : undefined;
}

/** A check whose input is missing holds for a deny and does not hold for an allow. */
export function conditionsHold(
  conditions: CompiledConditions,
  effect: 'allow' | 'deny',
  inputs: ConditionInputs,
): boolean {
  for (const check of conditions.checks) {
    if (!(checkHolds(check, conditions.timezone, inputs) ?? effect === 'deny')) return false;
  }
  return true;
}
