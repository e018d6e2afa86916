/**
 * Access tokens whose signature and claims have been checked, so that each is checked once. Nothing here says that a token still proves
 * anybody: its session and its user are looked at each time.
 *
 * A change of the signing keys clears everything, and a verification that began before it does not land: it is done again.
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

export interface VerifiedTokensParts {
  readonly capacity: number;
  readonly verifier: TokenVerifier;
  /** Of tokens that were valid before. */
  readonly limiter: LoadLimiter;
  /** Of all others, which anyone may make up: so few at once that they take little of a turn of the event loop. */
  readonly unseenLimiter: LoadLimiter;
  readonly monotonicMs: () => number;
}

interface Entry {
  readonly token: Accepted;
  /** Whole monotonic milliseconds, from before the verification began. */
  readonly verifiedAtMs: number;
}

export class VerifiedTokens {
  readonly #parts: VerifiedTokensParts;
  readonly #entries: LRUCache<string, Entry>;
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

  /** What the verifier said; undefined = it has to be asked. The times of a valid token are for the caller to compare. */
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

  /** As ReadThroughCache.isKnown. */
  isKnown(digest: string): boolean {
    return this.#known.has(digest);
  }

  /** Verifies the token, or waits for the verification under way. As ReadThroughCache.fill. */
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
