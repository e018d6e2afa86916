/** The classes of loads, and how many loads of each may run and wait. No class uses the capacity of another. */

import { mapMembers } from '../domain/objects.ts';
import { LoadLimiter } from './load-limiter.ts';

export const LIMITS = {
  /** Tenants and global policies. */
  rules: { permits: 256, maxWaiting: 10_000 },
  /** Users, sessions, and keys that were found before. */
  known: { permits: 256, maxWaiting: 10_000 },
  /**
   * Keys that were never found in this process, which any client can invent. The permits are the number of keys that two
   * batched statements of the store read.
   */
  unseen: { permits: 200, maxWaiting: 10_000 },
  /** Verifications of access tokens that were valid in this process before. */
  known_token: { permits: 64, maxWaiting: 10_000 },
  /**
   * Verifications of other access tokens. One ends in a later turn of the event loop, so at most this number of them
   * begin in one turn: about 0.4 ms.
   */
  unseen_token: { permits: 4, maxWaiting: 10_000 },
  /** Verifications of tokens of other issuers, likewise. */
  known_issuer_token: { permits: 64, maxWaiting: 10_000 },
  unseen_issuer_token: { permits: 4, maxWaiting: 10_000 },
  /**
   * Transactions that create users of issuers, or give them roles: fewer than the transactions that the pool of a gate
   * permits.
   */
  admission: { permits: 4, maxWaiting: 1000 },
} as const;

export type LimitedClass = keyof typeof LIMITS;
export type Limiters = ReturnType<typeof makeLimiters>;

export function makeLimiters(monotonicMs: () => number) {
  return mapMembers(LIMITS, (limits) => new LoadLimiter({ ...limits, monotonicMs }));
}
