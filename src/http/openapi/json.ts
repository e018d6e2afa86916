/** Plain JSON, as the description of the API is made of it. */

export type Json = { readonly [name: string]: unknown };

/** What JSON keeps of a schema: its keywords, without the marks that the builder of schemas needs. */
export function plain(value: object): Json {
  return JSON.parse(JSON.stringify(value));
}

export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
