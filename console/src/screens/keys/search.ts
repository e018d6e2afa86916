import type { SearchText } from '../../api/search-text.ts';
import { type Given, oneOf, searched, text } from '../../shell/search.ts';

export const KEY_FILTERS = ['active', 'expiring', 'disabled', 'expired', 'revoked'] as const;
/** Days without a use, scopes without a use, or keys that never expire. */
export const KEY_CARES = ['unused-30', 'unused-90', 'unused-365', 'wider-than-used', 'without-expiry'] as const;
export type KeyCare = (typeof KEY_CARES)[number];
export const KEY_SORTS = [
  '-created_at',
  'created_at',
  '-last_used_at',
  'last_used_at',
  'expires_at',
  '-expires_at',
  'name',
  '-name',
] as const;
/** The editors of a key: its members, or the tokens that prove it. */
export const KEY_EDITS = ['edit', 'proof'] as const;
export type KeyEdit = (typeof KEY_EDITS)[number];
export type KeyFilter = (typeof KEY_FILTERS)[number];

export interface KeysSearch {
  readonly q?: SearchText;
  /** Absent: all. */
  readonly status?: KeyFilter;
  readonly care?: KeyCare;
  /** Absent: newest first. */
  readonly sort?: (typeof KEY_SORTS)[number];
  readonly user?: string;
  /** The id of the user that created the keys. */
  readonly creator?: string;
  /** The name of the issuer whose tokens prove the keys. */
  readonly issuer?: string;
  /** The open drawer: a key's id, or `new`. */
  readonly open?: string;
  /** The view that the drawer shows instead of the key. */
  readonly act?: KeyEdit;
}

export function keysSearch(given: Given): KeysSearch {
  return {
    ...searched(given),
    ...oneOf(given, 'status', KEY_FILTERS),
    ...oneOf(given, 'care', KEY_CARES),
    ...oneOf(given, 'sort', KEY_SORTS),
    ...text(given, 'user'),
    ...text(given, 'creator'),
    ...text(given, 'issuer'),
    ...text(given, 'open'),
    ...oneOf(given, 'act', KEY_EDITS),
  };
}
