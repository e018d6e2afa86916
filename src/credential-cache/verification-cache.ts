/**
 * Results of verifications of tokens, so that each token is verified once. Tokens that were accepted are kept by their
 * use, and rejected ones for a short time.
 */

import { LRUCache } from 'lru-cache';
import { Fills } from './fills.ts';
import { KnownCredentials } from './known-credentials.ts';
import type { LoadLimiter, Patience } from './load-limiter.ts';
import { NegativeCache } from './negative-cache.ts';
import { MAX_ABSENT, MAX_ENTRY_AGE_MS, type MapStats } from './read-through-cache.ts';

export const REJECTED_TTL_MS = 10_000;

export interface VerificationCacheParts {
  readonly capacity: number;
  readonly limiter: LoadLimiter;
  /**
   * For tokens that were never valid in this process, which any client can invent: few permits, so that verifications
   * take little of a turn of the event loop.
   */
  readonly unseenLimiter: LoadLimiter;
  readonly monotonicMs: () => number;
}

export interface VerificationEntry {
  /** Whole monotonic milliseconds, read before the verification began. */
  readonly verifiedAtMs: number;
}

export abstract class VerificationCache<Entry extends VerificationEntry> {
  readonly #parts: VerificationCacheParts;
  readonly #entries: LRUCache<string, Entry>;
  readonly #rejected = new NegativeCache<Entry>(MAX_ABSENT, REJECTED_TTL_MS);
  readonly #fills = new Fills();
  readonly #known: KnownCredentials;
  #hits = 0;
  #misses = 0;
  #rejectedFills = 0;

  constructor(parts: VerificationCacheParts) {
    this.#parts = parts;
    this.#entries = new LRUCache({ maxSize: parts.capacity, sizeCalculation: () => 1 });
    this.#known = new KnownCredentials(parts.capacity);
  }

  /** Returns the result for the token; undefined = the token must be verified. */
  find(digest: string, monotonicMs: number): Entry | undefined {
    const valid = this.#entries.get(digest);
    const entry = valid ?? (this.#rejected.size === 0 ? undefined : this.#rejected.get(digest, monotonicMs));
    if (entry === undefined || monotonicMs - entry.verifiedAtMs >= MAX_ENTRY_AGE_MS) return undefined;
    if (!this.holds(entry, monotonicMs)) return undefined;
    this.#hits++;
    return entry;
  }

  /** Like `ReadThroughCache.isKnown`. */
  isKnown(digest: string): boolean {
    return this.#known.has(digest);
  }

  clear(): void {
    this.#entries.clear();
    this.#rejected.clear();
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

  /** Reports whether the data that the result depends on is still current. */
  protected abstract holds(entry: Entry, monotonicMs: number): boolean;

  /** Verifies the token, or waits for the running verification. Like `ReadThroughCache.fill`. */
  protected join(digest: string, patience: Patience, verify: () => Promise<boolean>): Promise<boolean> {
    this.#misses++;
    const { limiter, unseenLimiter } = this.#parts;
    return this.#fills.join(digest, this.isKnown(digest) ? limiter : unseenLimiter, patience, verify);
  }

  protected store(digest: string, entry: Entry, isAccepted: boolean): void {
    if (isAccepted) {
      this.#rejected.delete(digest);
      this.#known.add(digest);
      this.#entries.set(digest, entry);
    } else {
      this.#entries.delete(digest);
      this.#rejected.put(digest, entry, entry.verifiedAtMs);
    }
  }

  /** Counts a result that was not stored, because its data changed while the verification ran. */
  protected rejectFill(): false {
    this.#rejectedFills++;
    return false;
  }
}
