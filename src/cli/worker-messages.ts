/** What the first process and its workers tell each other. */

import type { StoreAddress } from '../server/store.ts';

/** From the first process. */
export type Order = { readonly kind: 'start'; readonly store: StoreAddress } | { readonly kind: 'drain' };

/** From a worker: that it takes orders; then, each second, what keeps it from deciding, where nothing = ready. */
export type Report = { readonly kind: 'hello' } | { readonly kind: 'state'; readonly reasons: readonly string[] };

/** Messages come from our own program, but other parts of it use the same channel. */
export function isOrder(message: unknown): message is Order {
  return hasKind(message, ['start', 'drain']);
}

export function isReport(message: unknown): message is Report {
  return hasKind(message, ['hello', 'state']);
}

function hasKind(message: unknown, kinds: readonly string[]): boolean {
  return typeof message === 'object' && message !== null && 'kind' in message && kinds.includes(String(message.kind));
}
