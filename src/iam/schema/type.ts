/**
 * JSON schemas that carry the TypeScript type of the values they accept. One schema per input is the source of types,
 * validation and the description of the API.
 */

declare const VALUE: unique symbol;
declare const OPTIONAL: unique symbol;

export interface TSchema<T = unknown> extends Keywords {
  /** Never set: it carries the type of the values. */
  readonly [VALUE]?: T;
}

/** The keywords that all schemas share, and others, which the validator checks. */
interface Keywords {
  readonly description?: string;
  readonly title?: string;
  readonly type?: unknown;
  readonly properties?: unknown;
  readonly [keyword: string]: unknown;
}

interface TextKeywords extends Keywords {
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly format?: string;
}

interface NumberKeywords extends Keywords {
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly exclusiveMaximum?: number;
}

export interface ArrayKeywords extends Keywords {
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly uniqueItems?: boolean;
}

interface ObjectKeywords extends Keywords {
  readonly additionalProperties?: boolean | TSchema;
  readonly minProperties?: number;
  readonly maxProperties?: number;
  /** They are an argument of their own. */
  readonly properties?: never;
}

/** The type of the values that a schema accepts. */
export type Static<S extends TSchema> = S extends TSchema<infer T> ? T : never;

/** The schema of a member that may be absent. */
export interface TOptional<T> extends TSchema<T> {
  readonly [OPTIONAL]?: true;
}

type Properties = Readonly<Record<string, TSchema>>;
type OptionalNames<P extends Properties> = {
  [K in keyof P]: typeof OPTIONAL extends keyof P[K] ? K : never;
}[keyof P];
type Flat<T> = { [K in keyof T]: T[K] } & {};
type ValuesOf<P extends Properties> = keyof P extends never
  ? object
  : Flat<{ [K in Exclude<keyof P, OptionalNames<P>>]: Static<P[K]> } & { [K in OptionalNames<P>]?: Static<P[K]> }>;

interface TObject<P extends Properties> extends TSchema<ValuesOf<P>> {
  readonly properties: P;
}

type Optionals<P extends Properties> = { readonly [K in keyof P]: TOptional<Static<P[K]>> };

/** The schemas that `Type.Optional` returned. A copy of one is not in it, so a copy is required again. */
const optionals = new WeakSet<TSchema>();

export const Type = {
  String: (keywords?: TextKeywords): TSchema<string> => ({ type: 'string', ...keywords }),
  Integer: (keywords?: NumberKeywords): TSchema<number> => ({ type: 'integer', ...keywords }),
  Number: (keywords?: NumberKeywords): TSchema<number> => ({ type: 'number', ...keywords }),
  Boolean: (keywords?: Keywords): TSchema<boolean> => ({ type: 'boolean', ...keywords }),
  Null: (keywords?: Keywords): TSchema<null> => ({ type: 'null', ...keywords }),
  Unknown: (keywords?: Keywords): TSchema => ({ ...keywords }),
  /** A schema of other keywords, for values of the type `T`. */
  Unsafe: <T>(schema: Keywords): TSchema<T> => ({ ...schema }),
  Array: <S extends TSchema>(items: S, keywords?: ArrayKeywords): TSchema<Static<S>[]> => ({
    type: 'array',
    items,
    ...keywords,
  }),
  Union: <S extends readonly TSchema[]>(anyOf: readonly [...S], keywords?: Keywords): TSchema<Static<S[number]>> => ({
    anyOf,
    ...keywords,
  }),
  Object: <P extends Properties>(properties: P, keywords?: ObjectKeywords): TObject<P> => {
    const required = Object.keys(properties).filter((name) => {
      const member = properties[name];
      return member !== undefined && !optionals.has(member);
    });
    return { type: 'object', ...(required.length > 0 ? { required } : {}), properties, ...keywords };
  },
  /** A member of an object that may be absent. */
  Optional: optionalOf,
  /** An object whose members may all be absent. */
  Partial: <P extends Properties>(properties: P, keywords?: ObjectKeywords): TObject<Optionals<P>> =>
    Type.Object(optionalsOf(properties), keywords),
};

function optionalOf<S extends TSchema>(schema: S): TOptional<Static<S>>;
function optionalOf(schema: TSchema): TSchema {
  const optional = { ...schema };
  optionals.add(optional);
  return optional;
}

function optionalsOf<P extends Properties>(properties: P): Optionals<P>;
function optionalsOf(properties: Properties): Properties {
  return Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, optionalOf(schema)]));
}
