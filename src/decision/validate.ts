/**
 * Validates roles, keys and policies from requests and files, with a message for each invalid member. Valid rules
 * compile: a decision never meets a pattern or condition that it cannot read.
 */

import { isObject, pointerTo } from '../domain/json.ts';
import type { FieldError } from '../domain/problem-details.ts';
import type { ResourceConstraints } from '../domain/records.ts';
import { CONTROL } from '../domain/text.ts';
import { isTimezone } from './clock.ts';
import { CONDITION_KEYS, type Condition, conditionOf, type PolicyConditions } from './condition-table.ts';
import { isWithinBounds } from './globs.ts';
import { MAX_CONSTRAINT_NAMES, MAX_CONSTRAINTS_BYTES, MAX_ENTRIES, MAX_GLOB_LENGTH, MAX_STARS } from './limits.ts';
import { RESOURCE_KINDS, type ResourceKind } from './model.ts';
import { isPermissionPattern } from './permissions.ts';
import { parseResourcePattern } from './policies.ts';

export { isTimezone } from './clock.ts';
export { isPermissionPattern } from './permissions.ts';

export type ValidationResult<T> =
  | { readonly kind: 'ok'; readonly value: T }
  | { readonly kind: 'errors'; readonly errors: readonly FieldError[] };

interface EntryRule {
  readonly accepts: (entry: string, index: number) => boolean;
  /** The message for an entry that is not accepted. */
  readonly expectation: string;
  readonly maxEntries: number;
}

/** Returns the accepted entries of a list, and adds an error for each other entry. */
function acceptedEntries(value: unknown, path: string, errors: FieldError[], rule: EntryRule): readonly string[] {
  const { accepts, expectation, maxEntries } = rule;
  if (!Array.isArray(value)) {
    errors.push({ path, message: 'must be an array of strings' });
    return [];
  }
  if (value.length > maxEntries) {
    errors.push({ path, message: `must have at most ${maxEntries} entries` });
    return [];
  }
  const accepted: string[] = [];
  for (const [index, entry] of value.entries()) {
    if (typeof entry === 'string' && accepts(entry, index)) accepted.push(entry);
    else errors.push({ path: `${path}/${index}`, message: expectation });
  }
  return accepted;
}

const GLOB_BOUNDS = `of at most ${MAX_GLOB_LENGTH} characters and ${MAX_STARS} *, without control characters`;

function isName(text: string): boolean {
  return text !== '' && isWithinBounds(text) && text.isWellFormed() && !CONTROL.test(text);
}

export function isResourcePattern(text: string): boolean {
  const pattern = parseResourcePattern(text);
  return text === '*' || (pattern !== undefined && isName(pattern.glob));
}

const PATTERNS: EntryRule = {
  accepts: isPermissionPattern,
  expectation: 'must be * or <resource>:<action>, in which * replaces a whole part',
  maxEntries: MAX_ENTRIES,
};
const RESOURCE_PATTERNS: EntryRule = {
  accepts: isResourcePattern,
  expectation: `must be * or <kind>/<glob> with kind ${RESOURCE_KINDS.join(', ')} and a glob ${GLOB_BOUNDS}`,
  maxEntries: MAX_ENTRIES,
};
const NAMES: EntryRule = {
  accepts: isName,
  expectation: `must be a non-empty name or glob ${GLOB_BOUNDS}`,
  maxEntries: MAX_CONSTRAINT_NAMES,
};

function validateEntries(value: unknown, path: string, rule: EntryRule): readonly FieldError[] {
  const errors: FieldError[] = [];
  acceptedEntries(value, path, errors, rule);
  return errors;
}

/** `permissions` of a role, `scopes` of a key, `actions` of a policy. */
export function validatePatterns(value: unknown, path: string): readonly FieldError[] {
  return validateEntries(value, path, PATTERNS);
}

/** `resources` of a policy. */
export function validateResourcePatterns(value: unknown, path: string): readonly FieldError[] {
  return validateEntries(value, path, RESOURCE_PATTERNS);
}

/** Names of models or globs on them: of a budget, or of limits by model. */
export function validateModels(value: unknown, path: string): readonly FieldError[] {
  return validateEntries(value, path, NAMES);
}

export function validateModel(text: string, path: string): readonly FieldError[] {
  return isName(text) ? [] : [{ path, message: NAMES.expectation }];
}

/** `settings.timezone`, and that of conditions. */
export function validateTimezone(value: unknown, path: string): readonly FieldError[] {
  if (typeof value === 'string' && isTimezone(value)) return [];
  return [{ path, message: 'must be a name of the IANA time zone database, such as Europe/Berlin' }];
}

/** Parses `resource_constraints`: an absent or null member allows any name, an empty list none. */
export function parseConstraints(
  value: unknown,
  path = '/resource_constraints',
): ValidationResult<ResourceConstraints> {
  if (value === undefined || value === null) return { kind: 'ok', value: {} };
  if (!isObject(value)) return { kind: 'errors', errors: [{ path, message: 'must be an object' }] };
  const errors: FieldError[] = [];
  const constraints: Partial<Record<ResourceKind, readonly string[]>> = {};
  for (const [key, names] of Object.entries(value)) {
    const kind = RESOURCE_KINDS.find((known) => known === key);
    if (kind === undefined)
      errors.push({ path: path + pointerTo(key), message: `must be one of ${RESOURCE_KINDS.join(', ')}` });
    else if (names !== null && names !== undefined)
      constraints[kind] = acceptedEntries(names, path + pointerTo(key), errors, NAMES);
  }
  return errors.length === 0 ? { kind: 'ok', value: constraints } : { kind: 'errors', errors };
}

/** The operators of one condition; adds the errors to `errors`. */
function parseOperators(condition: Condition, value: unknown, path: string, errors: FieldError[]) {
  const { operators, fault } = condition;
  const [plain, negation] = operators;
  const parsed: Record<string, readonly string[]> = {};
  if (!isObject(value) || Object.keys(value).length === 0) {
    errors.push({ path, message: `must be an object with ${plain} or ${negation}` });
    return parsed;
  }
  for (const [operator, operand] of Object.entries(value)) {
    const at = path + pointerTo(operator);
    if (!operators.includes(operator)) {
      errors.push({ path: at, message: `must be ${plain} or ${negation}` });
      continue;
    }
    const entries = acceptedEntries(operand, at, errors, condition);
    const message = Array.isArray(operand) && entries.length === operand.length ? fault(entries) : undefined;
    if (message !== undefined) errors.push({ path: at, message });
    parsed[operator] = entries;
  }
  return parsed;
}

/** Parses `conditions` of a policy: absent, null or `{}` is always. */
export function parseConditions(value: unknown, path = '/conditions'): ValidationResult<PolicyConditions> {
  if (value === undefined || value === null) return { kind: 'ok', value: {} };
  if (!isObject(value)) return { kind: 'errors', errors: [{ path, message: 'must be an object' }] };
  const errors: FieldError[] = [];
  const parsed: [string, unknown][] = [];
  for (const [key, operand] of Object.entries(value)) {
    const at = path + pointerTo(key);
    const condition = conditionOf(key);
    if (condition !== undefined) parsed.push([key, parseOperators(condition, operand, at, errors)]);
    else if (key !== 'timezone') errors.push({ path: at, message: `must be ${CONDITION_KEYS.join(', ')} or timezone` });
    else {
      errors.push(...validateTimezone(operand, at));
      parsed.push([key, operand]);
    }
  }
  return errors.length === 0 ? { kind: 'ok', value: Object.fromEntries(parsed) } : { kind: 'errors', errors };
}

export function validateConstraints(value: unknown, path?: string): readonly FieldError[] {
  const parsed = parseConstraints(value, path);
  return parsed.kind === 'ok' ? [] : parsed.errors;
}

/** The `resource_constraints` of a key. They are bounded, because they take memory that all keys share. */
export function validateKeyConstraints(value: unknown): readonly FieldError[] {
  const bytes = value === undefined ? 0 : Buffer.byteLength(JSON.stringify(value));
  if (bytes <= MAX_CONSTRAINTS_BYTES) return validateConstraints(value);
  return [{ path: '/resource_constraints', message: `must be at most ${MAX_CONSTRAINTS_BYTES / 1024} KiB as JSON` }];
}
