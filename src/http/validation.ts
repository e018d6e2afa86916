/** Validation by TypeBox schemas, which Ajv compiles in strict mode: no coercion, no defaults, no unknown members. */

import { Ajv, type AnySchemaObject, type ErrorObject, type ValidateFunction } from 'ajv';
import addFormats from 'ajv-formats';
import { type Static, type TSchema, Type } from 'typebox';
import { pointerTo } from '../domain/json.ts';
import type { FieldError } from '../domain/problem-details.ts';
import { fieldMessage } from './field-messages.ts';

const MAX_ERRORS = 50;

/** Verbose: an error has its value and its schema, for the message. */
const OPTIONS = { strict: true, allowUnionTypes: true, ownProperties: true, verbose: true };
const thorough = new Ajv({ ...OPTIONS, allErrors: true });
const frugal = new Ajv({ ...OPTIONS, allErrors: false });
const rfc3339 = addFormats.default(new Ajv(), ['date-time']).compile<string>({ type: 'string', format: 'date-time' });
for (const ajv of [thorough, frugal]) {
  addFormats.default(ajv, ['date', 'email']);
  // `Date` expresses neither leap seconds nor offsets without minutes, which the format of `ajv-formats` accepts.
  ajv.addFormat('date-time', (text: string) => rfc3339(text) && isWithinYears(Date.parse(text)));
  ajv.addVocabulary(['asksAlso']);
}

const [FIRST_MS, LAST_MS] = [Date.parse('0000-01-01T00:00:00Z'), Date.parse('9999-12-31T23:59:59.999Z')];

/** RFC 3339 writes no other years in UTC, to which an offset may lead. False for NaN. */
function isWithinYears(ms: number): boolean {
  return ms >= FIRST_MS && ms <= LAST_MS;
}

export type Validated<T> =
  | { readonly kind: 'valid'; readonly value: T }
  | { readonly kind: 'invalid'; readonly errors: readonly FieldError[] };

/**
 * Validates one kind of value. With `allErrors`, Ajv collects every error of an invalid value instead of the first,
 * without a bound, so the value must be small.
 */
type Validator<T> = (value: unknown, allErrors: boolean) => Validated<T>;

/** The schema of an object without members. */
export const NOTHING = Type.Object({}, { additionalProperties: false });
export type Nothing = typeof NOTHING;

/**
 * Compiles the schema at the first value. Compiling all schemas of the API at the start took 0.3 s.
 * @param schema undefined: `NOTHING`
 */
export function validatorOf<S extends TSchema = Nothing>(schema: S | undefined): Validator<Static<S>> {
  const plain: AnySchemaObject = schema ?? NOTHING;
  let first: ValidateFunction<Static<S>> | undefined;
  return (value, allErrors) => {
    first ??= frugal.compile<Static<S>>(plain);
    if (first(value)) return { kind: 'valid', value };
    // Ajv caches compiled schemas.
    const all = allErrors ? thorough.compile<Static<S>>(plain) : first;
    return { kind: 'invalid', errors: fieldErrors((all(value) ? first : all).errors ?? []) };
  };
}

function fieldErrors(errors: readonly ErrorObject[]): readonly FieldError[] {
  const byPath = new Map<string, FieldError>();
  for (const error of errors.slice(0, MAX_ERRORS)) {
    const field = fieldError(error);
    byPath.getOrInsert(field.path, field);
  }
  return [...byPath.values()];
}

function fieldError(error: ErrorObject): FieldError {
  const path = `${error.instancePath}${memberOf(error)}`;
  return { path, message: fieldMessage(error, path) };
}

/** An error of an object about one of its members. */
function memberOf({ keyword, params }: ErrorObject): string {
  const named: Readonly<Record<string, unknown>> = params;
  const member =
    keyword === 'additionalProperties'
      ? named['additionalProperty']
      : keyword === 'required'
        ? named['missingProperty']
        : undefined;
  return member === undefined ? '' : pointerTo(String(member));
}
