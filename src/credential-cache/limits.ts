/** The classes of loads, and how many of each may run and wait. What one class uses up, no other lacks. */

import { LoadLimiter } from './load-limiter.ts';

/**
 * - `rules`: tenants and global policies;
 * - `known`: users, sessions, and keys that were found before;
 * - `unseen`: keys that were never found here, which anyone may make up;
 * - `known_token`, `unseen_token`: verifications of access tokens that were, or never were, valid here.
 */
export type LimitedClass = 'rules' | 'known' | 'unseen' | 'known_token' | 'unseen_token';

export type Limiters = { readonly [Name in LimitedClass]: LoadLimiter };

interface Limits {
  /** Loads at once. */
  readonly permits: number;
  /** Loads that wait for a permit. */
  readonly maxWaiting: number;
}

export const LIMITS: { readonly [Name in LimitedClass]: Limits } = {
  rules: { permits: 256, maxWaiting: 10_000 },
  known: { permits: 256, maxWaiting: 10_000 },
  // As many as two statements of the store read together.
  unseen: { permits: 200, maxWaiting: 10_000 },
  known_token: { permits: 64, maxWaiting: 10_000 },
  // A verification ends in a later turn of the event loop, so this is also how many begin in one turn at most: about 0.4 ms.
  unseen_token: { permits: 4, maxWaiting: 10_000 },
};

export function makeLimiters(monotonicMs: () => number): Limiters {
  const limiter = (name: LimitedClass): LoadLimiter => new LoadLimiter({ ...LIMITS[name], monotonicMs });
  return {
    rules: limiter('rules'),
    known: limiter('known'),
    unseen: limiter('unseen'),
    known_token: limiter('known_token'),
    unseen_token: limiter('unseen_token'),
  };
}
