/**
 * The store's clock, estimated from the times in its answers. All processes share that clock, so they agree on the
 * beginning of a rate limit window or a month and on the expiry of a credential, even if the clocks of their machines
 * are wrong.
 */

/**
 * The drift of a monotonic clock from the store's, per millisecond: 200 parts in a million, twice the drift of quartz.
 */
const DRIFT = 0.0002;

export interface Interval {
  readonly earliestMs: number;
  readonly latestMs: number;
}

export class StoreClock {
  /** The bounds of store time minus monotonic time, at `#seenAtMs`. */
  #lowMs = Number.NEGATIVE_INFINITY;
  #highMs = Number.POSITIVE_INFINITY;
  #seenAtMs = 0;

  /** False until the first answer. */
  get known(): boolean {
    return this.#highMs !== Number.POSITIVE_INFINITY;
  }

  /**
   * Updates the bounds from one answer.
   * @param sentMs when the request was sent, by the monotonic clock
   * @param receivedMs when the answer was received
   * @param nowMs the store's time in the answer
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
   * Returns the store's time in whole milliseconds since the epoch, accurate to half the shortest round trip to the
   * store.
   * @param localMs the machine's own clock, which is returned until the first answer
   */
  nowMs(monotonicMs: number, localMs: () => number): number {
    return this.known ? Math.floor(monotonicMs + (this.#lowMs + this.#highMs) / 2) : localMs();
  }
}
