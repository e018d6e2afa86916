/** Plain JSON, of which the API's description consists. */

export type Json = { readonly [name: string]: unknown };

/** Returns the schema as plain JSON: its keywords, without the builder's symbols. */
export function plain(value: object): Json {
  return JSON.parse(JSON.stringify(value));
}
