/** What the palette offers: one entry is one press of Enter. */

import type { IconName } from '../../ui/icon.tsx';

export interface Entry {
  /** Unique in the palette. */
  readonly id: string;
  readonly icon: IconName;
  readonly name: string;
  /** What tells it from others of the same name. */
  readonly detail?: string | undefined;
  readonly isMono?: boolean;
  /** At the end of the line. */
  readonly aside?: string | undefined;
  /** The keys that do the same without the palette. */
  readonly keys?: readonly string[];
  readonly go: () => void;
}

export type GroupName = 'request' | 'places' | 'actions' | 'users' | 'keys' | 'roles' | 'policies' | 'tenants';

export interface Group {
  readonly id: GroupName;
  readonly entries: readonly Entry[];
}

/** Reports whether a word of the name begins with the typed text; any name does with none. */
export function isMeant(name: string, typed: string): boolean {
  const wanted = typed.toLowerCase();
  const words = name.toLowerCase().split(/\s+/);
  return words.some((_, at) => words.slice(at).join(' ').startsWith(wanted));
}

const REQUEST_ID = /^req_[0-9A-Za-z]{1,64}$/;
const KEY_TEXT = /^psk_/;
/** As many characters of a key as lists show. What is searched for is in addresses, and those are logged on their way. */
const SHOWN_OF_KEY = 8;

/** What a typed text asks for. */
export type Wanted =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'request'; readonly id: string }
  | { readonly kind: 'user'; readonly id: string }
  | { readonly kind: 'key'; readonly id: string }
  | { readonly kind: 'prefix'; readonly prefix: string }
  | { readonly kind: 'text'; readonly q: string };

/** Never gives more of an API key than its shown prefix, however much of it was pasted. */
export function wantedOf(typed: string): Wanted {
  const text = typed.trim();
  if (text === '') return { kind: 'nothing' };
  if (REQUEST_ID.test(text)) return { kind: 'request', id: text };
  if (KEY_TEXT.test(text)) return { kind: 'prefix', prefix: text.slice(0, SHOWN_OF_KEY) };
  if (/^usr_[0-9a-z]{26}$/.test(text)) return { kind: 'user', id: text };
  if (/^key_[0-9a-z]{26}$/.test(text)) return { kind: 'key', id: text };
  return { kind: 'text', q: text };
}
