/**
 * The store's clock, as this process knows it from the times that the store's answers brought. All processes share that clock, so they
 * agree on where a rate limit window or a month begins, and on when a credential expires, however wrong the clocks of their machines are.
 */

/** How far a monotonic clock may run away from the store's, per millisecond: 200 parts in a million, twice what quartz does. */
const DRIFT = 0.0002;

export interface Interval {
  readonly earliestMs: number;
  readonly latestMs: number;
}

export class StoreClock {
  /** Store time minus monotonic time lies between these, as seen at `#seenAtMs`. */
  #lowMs = Number.NEGATIVE_INFINITY;
  #highMs = Number.POSITIVE_INFINITY;
  #seenAtMs = 0;

  /** False until the first answer. */
  get known(): boolean {
    return this.#highMs !== Number.POSITIVE_INFINITY;
  }

  /**
   * Learns from one answer.
   * @param sentMs when the question left, by the monotonic clock
   * @param receivedMs when the answer was here
   * @param nowMs what the store's clock said in between
   */
  learn(sentMs: number, receivedMs: number, nowMs: number): void {
    const low = nowMs - receivedMs;
    const high = nowMs - sentMs;
    const aged = (receivedMs - this.#seenAtMs) * DRIFT;
    const keptLow = Math.max(low, this.#lowMs - aged);
    const keptHigh = Math.min(high, this.#highMs + aged);
    // If the intervals do not meet, the store's clock was set or another server answers now. The newest answer counts.
    const agree = keptLow <= keptHigh;
    this.#lowMs = agree ? keptLow : low;
    this.#highMs = agree ? keptHigh : high;
    this.#seenAtMs = receivedMs;
  }

  /** Returns the interval that the store's time lies in. Call it only when `known`. */
  at(monotonicMs: number): Interval {
    const aged = (monotonicMs - this.#seenAtMs) * DRIFT;
    return { earliestMs: monotonicMs + this.#lowMs - aged, latestMs: monotonicMs + this.#highMs + aged };
  }

  /**
   * Returns the store's time in whole milliseconds since the epoch, accurate to half the shortest round trip to the store.
   * @param localMs the machine's own clock, which is returned until the first answer
   */
  nowMs(monotonicMs: number, localMs: () => number): number {
    return this.known ? Math.floor(monotonicMs + (this.#lowMs + this.#highMs) / 2) : localMs();
  }
}
