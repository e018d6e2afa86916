/** Keywords and kinds of schemas that TypeBox does not have. */

import { type Static, type TSchema, Type } from 'typebox';

export type Component<S extends TSchema = TSchema> = S & { readonly title: string };

/**
 * A schema that the description of the API keeps under a name of its own: `User`.
 * @param schema made for this call
 */
export function component<S extends TSchema>(name: string, schema: S): Component<S> {
  return Object.assign(schema, { title: name });
}

export function described<S extends TSchema>(schema: S, description: string) {
  return Type.Unsafe<Static<S>>({ ...schema, description });
}

/** A time with a description. In code it is a Date, which `JSON.stringify` writes as RFC 3339. */
export function dateTime(description: string) {
  return Type.Unsafe<Date>({ type: 'string', format: 'date-time', description });
}

export function shownText(description: string) {
  return Type.String({ description });
}

export function shownTextOrNull(description: string) {
  return nullable(shownText(description));
}

/** A text of a request, which may be absent or empty. */
export function optionalText(maxLength: number, description: string) {
  return Type.Optional(Type.String({ maxLength, description }));
}

/** A text of a request that selects rows. It may be absent, and is not empty. */
export function filterText(maxLength: number, description: string) {
  return Type.Optional(Type.String({ minLength: 1, maxLength, description }));
}

/** A whole number from 0 on, with a description. */
export function countOf(description: string) {
  return Type.Integer({ minimum: 0, description });
}

export function flagOf(description: string) {
  return Type.Boolean({ description });
}

/**
 * Keywords that only the description of the API has. The use case checks them beyond the schema, with reasons of its
 * own.
 * @example Type.String({ maxLength: 64, ...asksAlso({ pattern: '^[a-z]' }) })
 */
export function asksAlso(keywords: Readonly<Record<string, unknown>>) {
  return { asksAlso: keywords };
}

/**
 * The same schema, or null. One `type` list instead of `anyOf`, so that a value that does not match has one error.
 * @throws TypeError for a schema without `type`
 */
export function nullable<S extends TSchema>(schema: S) {
  if (!('type' in schema)) throw new TypeError('only a schema with a type can be made nullable');
  return Type.Unsafe<Static<S> | null>({ ...schema, type: [schema.type, 'null'] });
}
