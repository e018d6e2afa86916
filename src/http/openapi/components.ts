/** Collects the components of the description, to which other parts refer. */

import { isObject } from '../../domain/json.ts';
import { type Json, plain } from './json.ts';

/** Keywords whose values are data, not schemas. */
const DATA: ReadonlySet<string> = new Set(['asksAlso', 'const', 'default', 'enum', 'examples', 'required', 'type']);

export class Components {
  readonly #kinds = new Map<string, Map<string, Json>>();

  /** Returns the schema with a reference in place of each schema with a title, itself included. */
  schema(schema: object): Json {
    return this.#lifted(plain(schema));
  }

  /** The same for requests, in which no text may have NUL. */
  input(schema: object): Json {
    return this.#lifted(withoutNul(plain(schema)));
  }

  /**
   * Keeps a component.
   * @param kind `schemas`, `responses`, `headers`, `parameters`
   * @returns a reference to it
   * @throws Error for two different ones of the same name
   */
  keep(kind: string, name: string, component: Json): Json {
    const kept = this.#kinds.getOrInsertComputed(kind, () => new Map<string, Json>());
    const before = kept.get(name);
    if (before !== undefined && JSON.stringify(before) !== JSON.stringify(component)) {
      throw new Error(`two different ${kind} of the API are called ${name}`);
    }
    kept.set(name, component);
    return { $ref: `#/components/${kind}/${name}` };
  }

  all(): Json {
    const sorted = <T>(map: ReadonlyMap<string, T>) => [...map].sort(([a], [b]) => (a < b ? -1 : 1));
    return Object.fromEntries(sorted(this.#kinds).map(([kind, kept]) => [kind, Object.fromEntries(sorted(kept))]));
  }

  #lifted(schema: Json): Json {
    const { title, asksAlso, ...rest } = schema;
    const walked = Object.fromEntries(
      Object.entries({ ...rest, ...(isObject(asksAlso) ? asksAlso : {}) }).map(([keyword, value]) => [
        keyword,
        DATA.has(keyword) ? value : this.#inner(keyword, value),
      ]),
    );
    return typeof title === 'string' ? this.keep('schemas', title, walked) : walked;
  }

  #inner(keyword: string, value: unknown): unknown {
    if (Array.isArray(value)) return value.map((entry: unknown) => (isObject(entry) ? this.#lifted(entry) : entry));
    if (!isObject(value)) return value;
    if (keyword !== 'properties' && keyword !== 'patternProperties') return this.#lifted(value);
    return Object.fromEntries(
      Object.entries(value).map(([name, member]) => [name, isObject(member) ? this.#lifted(member) : member]),
    );
  }
}

/**
 * The pattern of texts without other restrictions. Requests with NUL are rejected, because PostgreSQL cannot store it.
 */
const WITHOUT_NUL = '^[^\\u0000]*$';

function withoutNul(schema: Json): Json {
  const walked = Object.fromEntries(
    Object.entries(schema).map(([keyword, value]) => [keyword, DATA.has(keyword) ? value : eachWithoutNul(value)]),
  );
  const narrowed = ['pattern', 'format', 'enum', 'asksAlso'].some((keyword) => keyword in schema);
  const isText = schema['type'] === 'string' || (Array.isArray(schema['type']) && schema['type'].includes('string'));
  return isText && !narrowed ? { ...walked, pattern: WITHOUT_NUL } : walked;
}

function eachWithoutNul(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(eachWithoutNul);
  return isObject(value) ? withoutNul(value) : value;
}
