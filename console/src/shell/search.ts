/** Reads search parameters. An invalid parameter counts as absent, so an old link still opens its screen. */

import { type SearchText, searchOf, withoutSecret } from '../api/search-text.ts';

export type Given = Readonly<Record<string, unknown>>;

/** `{name: value}` if it is a text that is not empty; else `{}`. */
export function text<K extends string>(given: Given, name: K): { [N in K]?: string } {
  const value = given[name];
  const read: { [N in K]?: string } = {};
  if (typeof value === 'string' && value !== '') read[name] = value;
  // A text of digits arrives as a number.
  if (typeof value === 'number') read[name] = String(value);
  return read;
}

/** `{name: true}` if it is true; else `{}`. */
export function flag<K extends string>(given: Given, name: K): { [N in K]?: true } {
  const read: { [N in K]?: true } = {};
  if (given[name] === true) read[name] = true;
  return read;
}

/** `{name: value}` if it is one of the choices; else `{}`. */
export function oneOf<K extends string, T extends string>(
  given: Given,
  name: K,
  choices: readonly T[],
): { [N in K]?: T } {
  const read: { [N in K]?: T } = {};
  const found = choices.find((choice) => choice === given[name]);
  if (found !== undefined) read[name] = found;
  return read;
}

/** `{q: value}` if it is a text that is not empty; else `{}`. */
export function searched(given: Given): { readonly q?: SearchText } {
  const { q } = text(given, 'q');
  return q === undefined ? {} : { q: searchOf(q) };
}

/** The parameters as they may stand in an address: no screen puts a secret there. */
export function withoutSecrets(search: Given): Given {
  return Object.fromEntries(
    Object.entries(search).map(([name, value]) => [name, typeof value === 'string' ? withoutSecret(value) : value]),
  );
}
