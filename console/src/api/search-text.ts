/**
 * Text of a search. Searches are in URLs, which proxies, histories and logs keep, so no secret may be in one. Every list
 * demands a `SearchText`, and this module is the only one that makes it of typed text.
 */

declare const brand: unique symbol;
export type SearchText = string & { readonly [brand]: 'SearchText' };

const MAX_LENGTH = 200;
/** Lists show as many characters of a key. */
const SHOWN = 8;

/** A key of this server, wherever in the text it begins. */
const KEY = /psk_\w*/;
const TOKEN = /\beyJ[\w-]{16,}/;
/** A key of another system: a usual prefix with what follows, or a long run of letters and digits. */
const OTHER_KEY =
  /\b(?:sk|pk|rk|ak|api|key|token|pat|gh[a-z]|hf|gsk|xox[a-z])[-_](?=[\w-]*\d)[\w-]{16,}|(?=[a-z]*\d)(?=\d*[a-z])[a-z\d]{20,}/i;
const IDS = /\b(?!psk)[a-z]{2,6}_[0-9a-z]{26}\b|\breq_[0-9A-Za-z]{1,64}\b/g;
const EMAIL = /^[^\s@]+@[^\s@]*$/;

/** The search that a typed or pasted text requests: a key by its shown beginning, a token not at all. */
export function searchOf(typed: string): SearchText {
  const text = typed.trim().slice(0, MAX_LENGTH).trim();
  const search = withoutKeyOfOthers(withoutSecret(text));
  if (!isSearchText(search)) throw new Error('The search holds a secret.');
  return search;
}

/** The query of a list of keys: the beginning of a key, or a part of a name. */
export function keySearch(q: SearchText): { readonly prefix: SearchText } | { readonly q?: SearchText } {
  if (/^(?:psk_|sk-)/.test(q)) return { prefix: q };
  return q === '' ? {} : { q };
}

function isSearchText(text: string): text is SearchText {
  return withoutKeyOfOthers(withoutSecret(text)) === text;
}

/** The text as it is; of a text that holds a key of this server or a token, only the part that lists show. */
export function withoutSecret(text: string): string {
  const key = KEY.exec(text)?.[0];
  if (key !== undefined) return key.slice(0, SHOWN);
  return TOKEN.test(text) ? '' : text;
}

function withoutKeyOfOthers(text: string): string {
  if (EMAIL.test(text)) return text;
  return OTHER_KEY.exec(text.replaceAll(IDS, ' '))?.[0].slice(0, SHOWN) ?? text;
}
