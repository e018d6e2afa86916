/** The search that a typed or pasted text requests. */

import { type SearchText, searchOf } from './search-text.ts';

export type Wanted =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'request'; readonly id: string }
  | { readonly kind: 'user'; readonly id: string }
  | { readonly kind: 'key'; readonly id: string }
  | { readonly kind: 'prefix'; readonly prefix: string }
  | { readonly kind: 'text'; readonly q: SearchText };

export function wantedOf(typed: string): Wanted {
  const text = searchOf(typed);
  if (text === '') return { kind: 'nothing' };
  if (/^req_[0-9A-Za-z]{1,64}$/.test(text)) return { kind: 'request', id: text };
  if (/^psk_\w{0,4}$/.test(text)) return { kind: 'prefix', prefix: text };
  if (/^usr_[0-9a-z]{26}$/.test(text)) return { kind: 'user', id: text };
  if (/^key_[0-9a-z]{26}$/.test(text)) return { kind: 'key', id: text };
  return { kind: 'text', q: text };
}
