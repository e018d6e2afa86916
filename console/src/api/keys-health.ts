/** The state of the keys that an issuer's tokens are verified by. */

import type { Issuer } from '../../../client/index.ts';

const DAY_MS = 86_400_000;
/** A pasted key set that is as old needs care. */
const OLD_PASTE_DAYS = 90;

export type KeysHealth =
  | { readonly kind: 'fine' }
  | { readonly kind: 'never' }
  | { readonly kind: 'stale' }
  | { readonly kind: 'failing' }
  | { readonly kind: 'old'; readonly days: number };

export function keysHealth({ keys }: Pick<Issuer, 'keys'>, nowMs: number): KeysHealth {
  const { pasted: isPasted, fetched_at: at, error, stale: isStale } = keys;
  if (isStale) return { kind: 'stale' };
  if (at === null) return { kind: 'never' };
  const days = Math.floor((nowMs - Date.parse(at)) / DAY_MS);
  if (isPasted) return days >= OLD_PASTE_DAYS ? { kind: 'old', days } : { kind: 'fine' };
  return error === null ? { kind: 'fine' } : { kind: 'failing' };
}
