/** Messages about invalid members and parameters: one sentence with the allowed and the sent value. */

import type { ErrorObject } from 'ajv';
import { editDistance } from '../domain/text.ts';
import { hiddenIn, VISIBLE_TEXT, VISIBLE_TITLE } from '../domain/visible-text.ts';

const MAX_SHOWN = 60;
const MAX_LISTED = 24;
/** A name with at most two edits to a known name, and at most a third of its own length, counts as a typo. */
const MAX_SLIP = 2;
const LETTERS_PER_SLIP = 3;
/** The ends of names whose values are secrets or may be secrets. */
const SECRET = /(?:^|[_/-])(?:password|token|secret|key|keys|credential|digest|hash|cookie|authorization)s?$/i;

/**
 * Returns the message for one error of Ajv with `verbose`.
 * @param path a JSON Pointer to the member; the message has no value of a member that may hold a secret
 */
export function fieldMessage(error: ErrorObject, path: string): string {
  const params: Readonly<Record<string, unknown>> = error.params;
  switch (error.keyword) {
    case 'additionalProperties':
      return unknownMember(String(params['additionalProperty']), Object.keys(schemaOf(error)['properties'] ?? {}));
    case 'required':
      return 'This member is required.';
    case 'enum':
      return `${allowed(params['allowedValues'])}${sent(error, path)}`;
    case 'const':
      return `Must be ${JSON.stringify(params['allowedValue'])}${sent(error, path)}`;
    case 'type':
      return `Must be ${typeText(params['type'])}${sent(error, path)}`;
    case 'minimum':
    case 'maximum':
      return `Must be ${range(schemaOf(error)['minimum'], schemaOf(error)['maximum'])}${sent(error, path)}`;
    case 'minLength':
    case 'maxLength':
      return `Must have ${count(schemaOf(error)['minLength'], schemaOf(error)['maxLength'], 'character')}; you sent ${lengthOf(error.data)}.`;
    case 'minItems':
    case 'maxItems':
      return `Must have ${count(schemaOf(error)['minItems'], schemaOf(error)['maxItems'], 'item')}; you sent ${lengthOf(error.data)}.`;
    case 'minProperties':
    case 'maxProperties':
      return `Must have ${count(schemaOf(error)['minProperties'], schemaOf(error)['maxProperties'], 'member')}; you sent ${lengthOf(error.data)}.`;
    case 'uniqueItems':
      return 'Must not hold an item twice.';
    case 'format':
      return `Must be ${FORMATS[String(params['format'])] ?? `of the format ${String(params['format'])}`}${sent(error, path)}`;
    case 'pattern':
      return mismatch(String(params['pattern']), error, path);
    default:
      return `Value ${error.message ?? 'is not valid'}${sent(error, path)}`;
  }
}

const FORMATS: Readonly<Record<string, string>> = {
  'date-time': 'a time such as 2026-11-30T12:00:00Z (RFC 3339)',
  email: 'an email address',
};

function schemaOf({ parentSchema }: ErrorObject): Readonly<Record<string, unknown>> & { readonly properties?: object } {
  return parentSchema ?? {};
}

function mismatch(pattern: string, error: ErrorObject, path: string): string {
  if (pattern !== VISIBLE_TEXT && pattern !== VISIBLE_TITLE) return `Must match ${pattern}${sent(error, path)}`;
  const hidden = hiddenIn(String(error.data));
  if (hidden.length === 0) return 'Must not be blank.';
  return `Must not contain characters that cannot be seen, or that change the direction of text. Remove ${hidden.join(', ')}.`;
}

function unknownMember(name: string, known: readonly string[]): string {
  const most = Math.min(MAX_SLIP, Math.floor(name.length / LETTERS_PER_SLIP));
  const near = known
    .map((candidate) => ({ candidate, distance: editDistance(name.slice(0, MAX_SHOWN), candidate, most + 1) }))
    .filter(({ distance }) => distance <= most)
    .toSorted((a, b) => a.distance - b.distance)[0];
  if (near !== undefined) return `This member is unknown; did you mean ${near.candidate}?`;
  if (known.length === 0 || known.length > MAX_LISTED) return 'This member is unknown.';
  return `This member is unknown. Known ones: ${known.join(', ')}.`;
}

function allowed(values: unknown): string {
  const list: readonly unknown[] = Array.isArray(values) ? values : [];
  return list.length === 1 ? `Must be ${String(list[0])}` : `Must be one of ${list.map(String).join(', ')}`;
}

const TYPES: Readonly<Record<string, string>> = {
  array: 'a list',
  boolean: 'true or false',
  integer: 'a whole number',
  null: 'null',
  number: 'a number',
  object: 'an object',
  string: 'a string',
};

function typeText(types: unknown): string {
  const list: readonly unknown[] = Array.isArray(types) ? types : [types];
  return list.map((type) => TYPES[String(type)] ?? String(type)).join(' or ');
}

function range(least: unknown, most: unknown): string {
  if (least === undefined) return `at most ${String(most)}`;
  return most === undefined ? `at least ${String(least)}` : `between ${String(least)} and ${String(most)}`;
}

function count(least: unknown, most: unknown, unit: string): string {
  if (most === undefined) return `at least ${String(least)} ${plural(least, unit)}`;
  if (least === undefined || least === 0) return `at most ${String(most)} ${plural(most, unit)}`;
  return least === most ? `${String(least)} ${plural(least, unit)}` : `${String(least)} to ${String(most)} ${unit}s`;
}

function plural(number: unknown, unit: string): string {
  return number === 1 ? unit : `${unit}s`;
}

function lengthOf(data: unknown): number {
  // Counts characters as JSON Schema does.
  if (typeof data === 'string') return [...data].length;
  return typeof data === 'object' && data !== null ? Object.keys(data).length : 0;
}

/** Returns the end of the sentence: the sent value, unless it may be a secret. */
function sent({ data }: ErrorObject, path: string): string {
  if (path.split('/').some((name) => SECRET.test(name))) return '.';
  return `; you sent ${shown(data)}.`;
}

function shown(data: unknown): string {
  if (Array.isArray(data)) return 'a list';
  if (typeof data === 'object' && data !== null) return 'an object';
  const text = JSON.stringify(data) ?? 'nothing';
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
}
