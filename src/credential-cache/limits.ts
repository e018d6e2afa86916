/** The classes of loads, and how many loads of each may run and wait. No class uses the capacity of another. */

import { LoadLimiter } from './load-limiter.ts';

/**
 * - `rules`: tenants and global policies
 * - `known`: users, sessions, and keys that were found before
 * - `unseen`: keys that were never found in this process, which any client can invent
 * - `known_token`, `unseen_token`: verifications of access tokens that were, or never were, valid in this process
 * - `known_issuer_token`, `unseen_issuer_token`: those of tokens of other issuers
 * - `admission`: transactions that create users of issuers, or give them roles
 */
export type LimitedClass =
  | 'rules'
  | 'known'
  | 'unseen'
  | 'known_token'
  | 'unseen_token'
  | 'known_issuer_token'
  | 'unseen_issuer_token'
  | 'admission';

export type Limiters = { readonly [Name in LimitedClass]: LoadLimiter };

interface Limits {
  readonly permits: number;
  readonly maxWaiting: number;
}

export const LIMITS: { readonly [Name in LimitedClass]: Limits } = {
  rules: { permits: 256, maxWaiting: 10_000 },
  known: { permits: 256, maxWaiting: 10_000 },
  // The number of keys that two batched statements of the store read.
  unseen: { permits: 200, maxWaiting: 10_000 },
  known_token: { permits: 64, maxWaiting: 10_000 },
  // A verification ends in a later turn of the event loop, so at most this number of them begin in one turn: about 0.4
  // ms.
  unseen_token: { permits: 4, maxWaiting: 10_000 },
  known_issuer_token: { permits: 64, maxWaiting: 10_000 },
  unseen_issuer_token: { permits: 4, maxWaiting: 10_000 },
  // Fewer than the transactions that the pool of a gate permits.
  admission: { permits: 4, maxWaiting: 1000 },
};

export function makeLimiters(monotonicMs: () => number): Limiters {
  const limiter = (name: LimitedClass): LoadLimiter => new LoadLimiter({ ...LIMITS[name], monotonicMs });
  return {
    rules: limiter('rules'),
    known: limiter('known'),
    unseen: limiter('unseen'),
    known_token: limiter('known_token'),
    unseen_token: limiter('unseen_token'),
    known_issuer_token: limiter('known_issuer_token'),
    unseen_issuer_token: limiter('unseen_issuer_token'),
    admission: limiter('admission'),
  };
}
