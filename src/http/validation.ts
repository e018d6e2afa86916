/** Schemas are TypeBox, compiled by Ajv in strict mode: nothing is coerced, nothing is filled in, nothing unknown passes. */

import { Ajv, type AnySchemaObject, type ErrorObject } from 'ajv';
import addFormats from 'ajv-formats';
import { type Static, type TSchema, Type } from 'typebox';
import type { FieldError } from '../domain/problem.ts';
import { escapePointer } from './storable.ts';

const MAX_ERRORS = 50;

const thorough = new Ajv({ strict: true, allErrors: true, allowUnionTypes: true, ownProperties: true });
const frugal = new Ajv({ strict: true, allErrors: false, allowUnionTypes: true, ownProperties: true });
for (const ajv of [thorough, frugal]) {
  addFormats.default(ajv, ['date-time', 'email']);
  ajv.addVocabulary(['asksAlso']);
}

export type Validated<T> =
  | { readonly kind: 'valid'; readonly value: T }
  | { readonly kind: 'invalid'; readonly errors: readonly FieldError[] };

/**
 * Checks one kind of value. `allErrors` asks for every error of an invalid value rather than the first: Ajv collects them without a bound,
 * so the value must be small.
 */
export type Validator<T> = (value: unknown, allErrors: boolean) => Validated<T>;

export function compileValidator<S extends TSchema>(schema: S): Validator<Static<S>> {
  const plain: AnySchemaObject = schema;
  const all = thorough.compile<Static<S>>(plain);
  const first = frugal.compile<Static<S>>(plain);
  return (value, allErrors) => {
    if (first(value)) return { kind: 'valid', value };
    const failed = allErrors && !all(value) ? all : first;
    return { kind: 'invalid', errors: fieldErrors(failed.errors ?? []) };
  };
}

function fieldErrors(errors: readonly ErrorObject[]): readonly FieldError[] {
  const byPath = new Map<string, FieldError>();
  for (const error of errors.slice(0, MAX_ERRORS)) {
    const field = fieldError(error);
    if (!byPath.has(field.path)) byPath.set(field.path, field);
  }
  return [...byPath.values()];
}

function fieldError(error: ErrorObject): FieldError {
  const at = error.instancePath;
  const params: Readonly<Record<string, unknown>> = error.params;
  switch (error.keyword) {
    case 'additionalProperties':
      return { path: `${at}/${escapePointer(String(params['additionalProperty']))}`, message: 'There is no such member.' };
    case 'required':
      return { path: `${at}/${escapePointer(String(params['missingProperty']))}`, message: 'This member is required.' };
    case 'enum':
      return { path: at, message: `Must be one of: ${String(params['allowedValues'])}.` };
    default:
      return { path: at, message: `Value ${error.message ?? 'is not valid'}.` };
  }
}

/**
 * Keywords of what the use case asks beyond the schema, and refuses in its own words: for the description of the API alone.
 * @example Type.String({ maxLength: 64, ...asksAlso({ pattern: '^[a-z]' }) })
 */
export function asksAlso(keywords: Readonly<Record<string, unknown>>) {
  return { asksAlso: keywords };
}

/** The same schema, or null. One `type` list rather than `anyOf`, so that an error is told once. */
export function nullable<S extends TSchema & { readonly type: string }>(schema: S) {
  return Type.Unsafe<Static<S> | null>({ ...schema, type: [schema.type, 'null'] });
}
