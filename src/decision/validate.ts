/**
 * Validation of what people write into roles, keys and policies, with a message for each member at fault. What passes here compiles:
 * deciding never meets a pattern or a condition that it cannot read.
 */

import type { FieldError } from '../domain/problem-details.ts';
import { type Conditions, DAY_NAMES, type DayName, type ResourceConstraints } from '../domain/records.ts';
import { parseNetwork } from './address.ts';
import { isTimezone, parseEndOfSpan, parseTimeOfDay } from './clock.ts';
import { isWithinBounds } from './globs.ts';
import {
  MAX_CONSTRAINT_NAMES,
  MAX_CONSTRAINTS_BYTES,
  MAX_ENTRIES,
  MAX_GLOB_LENGTH,
  MAX_STARS,
  MAX_WEEKLY_WINDOWS,
} from './limits.ts';
import { RESOURCE_KINDS, type ResourceKind } from './model.ts';
import { isPermissionPattern } from './permissions.ts';
import { parseResourcePattern } from './policies.ts';
import { parseWeeklyWindow } from './weekly-hours.ts';

export { isTimezone } from './clock.ts';
export { isPermissionPattern } from './permissions.ts';

export type ValidationResult<T> =
  | { readonly kind: 'ok'; readonly value: T }
  | { readonly kind: 'errors'; readonly errors: readonly FieldError[] };

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** RFC 6901: `~` and `/` are escaped in a pointer. */
function member(path: string, name: string): string {
  return `${path}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

/** Strings of a list that pass a test at their index; each other entry is an error. */
function strings(
  value: unknown,
  path: string,
  errors: FieldError[],
  accepts: (text: string, index: number) => boolean,
  expectation: string,
  maxEntries = MAX_ENTRIES,
): readonly string[] {
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

/** C0 controls, DEL and C1 controls. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: finding them is the point
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/;

const GLOB_BOUNDS = `of at most ${MAX_GLOB_LENGTH} characters and ${MAX_STARS} *, without control characters`;

function isName(text: string): boolean {
  return text !== '' && isWithinBounds(text) && text.isWellFormed() && !CONTROL.test(text);
}

export function isResourcePattern(text: string): boolean {
  const pattern = parseResourcePattern(text);
  return text === '*' || (pattern !== undefined && isName(pattern.glob));
}

/** `permissions` of a role, `scopes` of a key, `actions` of a policy. */
export function validatePatterns(value: unknown, path: string): readonly FieldError[] {
  const errors: FieldError[] = [];
  strings(
    value,
    path,
    errors,
    isPermissionPattern,
    'must be * or <resource>:<action>, in which * replaces a whole part',
  );
  return errors;
}

/** `resources` of a policy. */
export function validateResourcePatterns(value: unknown, path: string): readonly FieldError[] {
  const errors: FieldError[] = [];
  strings(
    value,
    path,
    errors,
    isResourcePattern,
    `must be * or <kind>/<glob> with kind ${RESOURCE_KINDS.join(', ')} and a glob ${GLOB_BOUNDS}`,
  );
  return errors;
}

/** `settings.timezone`, and that of conditions. */
export function validateTimezone(value: unknown, path: string): readonly FieldError[] {
  if (typeof value === 'string' && isTimezone(value)) return [];
  return [{ path, message: 'must be a name of the IANA time zone database, such as Europe/Berlin' }];
}

/** `resource_constraints`: an absent or null member is any, an empty list none. */
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
      errors.push({ path: member(path, key), message: `must be one of ${RESOURCE_KINDS.join(', ')}` });
    else if (names !== null && names !== undefined) {
      const expectation = `must be a non-empty name or glob ${GLOB_BOUNDS}`;
      constraints[kind] = strings(names, member(path, key), errors, isName, expectation, MAX_CONSTRAINT_NAMES);
    }
  }
  return errors.length === 0 ? { kind: 'ok', value: constraints } : { kind: 'errors', errors };
}

/** Both operators of one condition; `read` adds its errors and gives undefined where there are some. */
function operators<T>(
  value: unknown,
  path: string,
  errors: FieldError[],
  known: readonly [string, string],
  read: (operand: unknown, path: string) => T,
): Partial<Record<string, T>> {
  if (!isObject(value) || Object.keys(value).length === 0) {
    errors.push({ path, message: `must be an object with ${known[0]} or ${known[1]}` });
    return {};
  }
  const parsed: Partial<Record<string, T>> = {};
  for (const [operator, operand] of Object.entries(value)) {
    if (known.includes(operator)) parsed[operator] = read(operand, member(path, operator));
    else errors.push({ path: member(path, operator), message: `must be ${known[0]} or ${known[1]}` });
  }
  return parsed;
}

function nonEmpty(
  value: unknown,
  path: string,
  errors: FieldError[],
  accepts: (text: string) => boolean,
  expectation: string,
  maxEntries = MAX_ENTRIES,
) {
  if (Array.isArray(value) && value.length === 0) errors.push({ path, message: 'must not be empty' });
  return strings(value, path, errors, accepts, expectation, maxEntries);
}

function timeSpan(value: unknown, path: string, errors: FieldError[]): readonly [string, string] {
  const isTime = (text: string, index: number) =>
    (index === 0 ? parseTimeOfDay(text) : parseEndOfSpan(text)) !== undefined;
  const read = strings(value, path, errors, isTime, 'must be HH:MM from 00:00 to 23:59 (an end may be 24:00)');
  const [start, end] = read;
  const well = Array.isArray(value) && read.length === value.length;
  if (well && (read.length !== 2 || start === end))
    errors.push({ path, message: 'must have a start and an end that differ' });
  return [start ?? '', end ?? ''];
}

function isDay(text: string): text is DayName {
  return DAY_NAMES.some((day) => day === text);
}

const WINDOW =
  'must be days and a window, such as Mon-Fri 08:00-18:00 or Sat 22:00-02:00. The end may be 24:00 and must differ from the start';

function isWeeklyWindow(text: string): boolean {
  return parseWeeklyWindow(text) !== undefined;
}

const CIDR = 'must be an IP address or CIDR block without host bits, leading zeros or zone id';

/** `conditions` of a policy: absent, null or `{}` is always. */
export function parseConditions(value: unknown, path = '/conditions'): ValidationResult<Conditions> {
  if (value === undefined || value === null) return { kind: 'ok', value: {} };
  if (!isObject(value)) return { kind: 'errors', errors: [{ path, message: 'must be an object' }] };
  const errors: FieldError[] = [];
  const conditions: { -readonly [K in keyof Conditions]: Conditions[K] } = {};
  for (const [key, operand] of Object.entries(value)) {
    const at = member(path, key);
    switch (key) {
      case 'ip_address': {
        const networks = (list: unknown, where: string) =>
          nonEmpty(list, where, errors, (text) => parseNetwork(text) !== undefined, CIDR);
        conditions.ip_address = operators(operand, at, errors, ['in', 'not_in'], networks);
        break;
      }
      case 'time':
        conditions.time = operators(operand, at, errors, ['between', 'not_between'], (span, where) =>
          timeSpan(span, where, errors),
        );
        break;
      case 'day_of_week': {
        const days = (list: unknown, where: string) =>
          nonEmpty(list, where, errors, isDay, `must be one of ${DAY_NAMES.join(', ')}`).filter(isDay);
        conditions.day_of_week = operators(operand, at, errors, ['in', 'not_in'], days);
        break;
      }
      case 'weekly_hours': {
        const windows = (list: unknown, where: string) =>
          nonEmpty(list, where, errors, isWeeklyWindow, WINDOW, MAX_WEEKLY_WINDOWS);
        conditions.weekly_hours = operators(operand, at, errors, ['in', 'not_in'], windows);
        break;
      }
      case 'timezone':
        if (typeof operand === 'string') conditions.timezone = operand;
        errors.push(...validateTimezone(operand, at));
        break;
      default:
        errors.push({ path: at, message: 'must be ip_address, time, day_of_week, weekly_hours or timezone' });
    }
  }
  return errors.length === 0 ? { kind: 'ok', value: conditions } : { kind: 'errors', errors };
}

export function validateConstraints(value: unknown, path?: string): readonly FieldError[] {
  const parsed = parseConstraints(value, path);
  return parsed.kind === 'ok' ? [] : parsed.errors;
}

/** The `resource_constraints` of a key: those of one key take a bounded part of the memory that all keys share. */
export function validateKeyConstraints(value: unknown, path = '/resource_constraints'): readonly FieldError[] {
  const bytes = value === undefined ? 0 : Buffer.byteLength(JSON.stringify(value));
  if (bytes <= MAX_CONSTRAINTS_BYTES) return validateConstraints(value, path);
  return [{ path, message: `must be at most ${MAX_CONSTRAINTS_BYTES / 1024} KiB as JSON` }];
}

export function validateConditions(value: unknown, path?: string): readonly FieldError[] {
  const parsed = parseConditions(value, path);
  return parsed.kind === 'ok' ? [] : parsed.errors;
}
