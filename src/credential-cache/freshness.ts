/** The staleness bound: how long cached data is trusted without a successful poll of the change feed. */

import { SingleFlight } from '../concurrency/single-flight.ts';
import { Fault } from '../domain/errors.ts';
import type { FeedClock } from './ports.ts';

interface FreshnessParts {
  readonly feed: FeedClock;
  readonly maxStalenessMs: number;
  readonly monotonicMs: () => number;
}

export class Freshness {
  readonly #parts: FreshnessParts;
  readonly #catchUps = new SingleFlight(() => this.#catchUp());

  constructor(parts: FreshnessParts) {
    this.#parts = parts;
  }

  /** Returns false before the first poll of the feed, and for a clock value that is not a number. */
  holds(monotonicMs: number): boolean {
    return monotonicMs - this.#parts.feed.polledAtMs <= this.#parts.maxStalenessMs;
  }

  /**
   * Reads the feed. Concurrent callers share one attempt.
   * @throws Fault (by rejecting) if the feed cannot be read, or is still stale
   */
  async restore(): Promise<void> {
    await this.#catchUps.run();
    if (!this.holds(this.#parts.monotonicMs()))
      throw new Fault('the change feed is too far behind to trust what is cached');
  }

  async #catchUp(): Promise<void> {
    try {
      await this.#parts.feed.catchUp();
    } catch (error) {
      throw error instanceof Fault ? error : new Fault('the change feed cannot be read', { cause: error });
    }
  }
}
