/**
 * Access tokens with verified signature and claims, so that each token is verified once. A verified token alone proves
 * no principal: each lookup reads its session and its user.
 *
 * A change of the signing keys clears everything. A verification that began before the change is not stored and runs
 * again.
 */

import { LRUCache } from 'lru-cache';
import { Fills } from './fills.ts';
import { KnownCredentials } from './known-credentials.ts';
import type { LoadLimiter, Patience } from './load-limiter.ts';
import { NegativeCache } from './negative-cache.ts';
import type { TokenVerifier, VerifiedToken } from './ports.ts';
import { LOADS_PER_FILL, MAX_ABSENT, MAX_ENTRY_AGE_MS, type MapStats } from './read-through-cache.ts';

export const REJECTED_TTL_MS = 10_000;

type Accepted = Extract<VerifiedToken, { kind: 'valid' }>;
type Rejected = Exclude<VerifiedToken, Accepted>;

interface VerifiedTokensParts {
  readonly capacity: number;
  readonly verifier: TokenVerifier;
  readonly limiter: LoadLimiter;
  /**
   * For all other tokens, which any client can invent: few permits, so that verifications take little of a turn of the
   * event loop.
   */
  readonly unseenLimiter: LoadLimiter;
  readonly monotonicMs: () => number;
}

interface TokenEntry {
  readonly token: Accepted;
  /** Whole monotonic milliseconds, read before the verification began. */
  readonly verifiedAtMs: number;
}

export class VerifiedTokens {
  readonly #parts: VerifiedTokensParts;
  readonly #entries: LRUCache<string, TokenEntry>;
  readonly #rejected = new NegativeCache<Rejected>(MAX_ABSENT, REJECTED_TTL_MS);
  readonly #fills = new Fills();
  readonly #known: KnownCredentials;
  #generation = 0;
  #hits = 0;
  #misses = 0;
  #rejectedFills = 0;

  constructor(parts: VerifiedTokensParts) {
    this.#parts = parts;
    this.#entries = new LRUCache({ max: parts.capacity });
    this.#known = new KnownCredentials(parts.capacity);
  }

  /**
   * Returns the verifier's result; undefined = the token must be verified. The caller compares the times of a valid
   * token.
   */
  peek(digest: string, monotonicMs: number): VerifiedToken | undefined {
    const entry = this.#entries.get(digest);
    if (entry !== undefined && monotonicMs - entry.verifiedAtMs < MAX_ENTRY_AGE_MS) {
      this.#hits++;
      return entry.token;
    }
    const rejected = this.#rejected.size === 0 ? undefined : this.#rejected.get(digest, monotonicMs);
    if (rejected !== undefined) this.#hits++;
    return rejected;
  }

  /** Like `ReadThroughCache.isKnown`. */
  isKnown(digest: string): boolean {
    return this.#known.has(digest);
  }

  /** Verifies the token, or waits for the running verification. Like `ReadThroughCache.fill`. */
  fill(digest: string, token: string, patience: Patience): Promise<boolean> {
    this.#misses++;
    const { limiter, unseenLimiter } = this.#parts;
    return this.#fills.join(digest, this.isKnown(digest) ? limiter : unseenLimiter, patience, () =>
      this.#verifyUntilStored(digest, token),
    );
  }

  clear(): void {
    this.#entries.clear();
    this.#rejected.clear();
    this.#generation++;
  }

  stats(): MapStats {
    return {
      size: this.#entries.size,
      weight: this.#entries.size,
      absent: this.#rejected.size,
      tombstones: 0,
      hits: this.#hits,
      misses: this.#misses,
      rejectedFills: this.#rejectedFills,
    };
  }

  async #verifyUntilStored(digest: string, token: string): Promise<boolean> {
    for (let attempt = 0; attempt < LOADS_PER_FILL; attempt++) {
      const generation = this.#generation;
      const verifiedAtMs = Math.floor(this.#parts.monotonicMs());
      const verified = await this.#parts.verifier.verify(token);
      if (generation === this.#generation) {
        this.#store(digest, verified, verifiedAtMs);
        return true;
      }
      this.#rejectedFills++;
    }
    return false;
  }

  #store(digest: string, verified: VerifiedToken, verifiedAtMs: number): void {
    if (verified.kind === 'valid') {
      this.#rejected.delete(digest);
      this.#known.add(digest);
      this.#entries.set(digest, Object.freeze({ token: Object.freeze(verified), verifiedAtMs }));
    } else {
      this.#entries.delete(digest);
      this.#rejected.put(digest, verified, verifiedAtMs);
    }
  }
}
