/** The search that a typed or pasted text requests. */

const REQUEST_ID = /^req_[0-9A-Za-z]{1,64}$/;
/** Up to as many characters of a key as lists show, wherever in the text it begins. */
const KEY_PREFIX = /psk_\w{0,4}/;
const ACCESS_TOKEN = /\beyJ[\w-]{16,}/;

/** The search that a typed text requests. */
export type Wanted =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'request'; readonly id: string }
  | { readonly kind: 'user'; readonly id: string }
  | { readonly kind: 'key'; readonly id: string }
  | { readonly kind: 'prefix'; readonly prefix: string }
  | { readonly kind: 'text'; readonly q: string };

/**
 * Reads a text that a user typed or pasted into a search. Searches are in URLs, which proxies log. The search of an API
 * key therefore has only the prefix that lists show, and an access token is never searched for.
 */
export function wantedOf(typed: string): Wanted {
  const text = typed.trim();
  if (text === '') return { kind: 'nothing' };
  if (REQUEST_ID.test(text)) return { kind: 'request', id: text };
  const prefix = KEY_PREFIX.exec(text)?.[0];
  if (prefix !== undefined) return { kind: 'prefix', prefix };
  if (ACCESS_TOKEN.test(text)) return { kind: 'nothing' };
  if (/^usr_[0-9a-z]{26}$/.test(text)) return { kind: 'user', id: text };
  if (/^key_[0-9a-z]{26}$/.test(text)) return { kind: 'key', id: text };
  return { kind: 'text', q: text };
}
