import type { SearchText } from '../../api/search-text.ts';
import { type Given, oneOf, searched, text } from '../../shell/search.ts';

export const KEY_FILTERS = ['active', 'expiring', 'expired', 'revoked'] as const;
export type KeyFilter = (typeof KEY_FILTERS)[number];

export interface KeysSearch {
  readonly q?: SearchText;
  /** Absent: all. */
  readonly status?: KeyFilter;
  readonly user?: string;
  /** The id of the user that created the keys. */
  readonly creator?: string;
  /** The open drawer: a key's id, or `new`. */
  readonly open?: string;
  /** The view that the drawer shows instead of the key. */
  readonly act?: 'edit';
}

export function keysSearch(given: Given): KeysSearch {
  return {
    ...searched(given),
    ...oneOf(given, 'status', KEY_FILTERS),
    ...text(given, 'user'),
    ...text(given, 'creator'),
    ...text(given, 'open'),
    ...oneOf(given, 'act', ['edit'] as const),
  };
}
