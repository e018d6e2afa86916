/** Work under way to fill a cache: one piece per key, within the limits of the key's class. */

import { Fault } from '../domain/errors.ts';
import type { LoadLimiter, Patience } from './load-limiter.ts';

/** One fill. What happens to its key meanwhile is noted here, for the landing rule. */
export interface Fill {
  /** The highest number of a change of this key that was applied since the load began; -1 = none. */
  overtakenBy: number;
}

interface Running {
  readonly fill: Fill;
  readonly patience: Patience;
  readonly done: Promise<boolean>;
}

/** The fills of one cache. Requests for a key that is being filled share that fill. */
export class Fills {
  readonly #running = new Map<string, Running>();

  get(key: string): Fill | undefined {
    return this.#running.get(key)?.fill;
  }

  /**
   * Runs `work` when the limiter gives a permit, or joins the fill of that key.
   * @param work resolves to whether its value landed; runs only when none is under way for the key
   * @returns the same promise for all that share the fill. Rejects with a Fault; a failed fill leaves nothing behind.
   */
  join(
    key: string,
    limiter: LoadLimiter,
    { client, untilMs }: Patience,
    work: (fill: Fill) => Promise<boolean>,
  ): Promise<boolean> {
    const running = this.#running.get(key);
    if (running !== undefined) {
      running.patience.untilMs = Math.max(running.patience.untilMs, untilMs);
      return running.done;
    }
    const fill: Fill = { overtakenBy: -1 };
    const patience: Patience = { client, untilMs };
    const done = this.#run(key, fill, limiter, patience, work);
    this.#running.set(key, { fill, patience, done });
    return done;
  }

  async #run(
    key: string,
    fill: Fill,
    limiter: LoadLimiter,
    patience: Patience,
    work: (fill: Fill) => Promise<boolean>,
  ): Promise<boolean> {
    try {
      const permit = limiter.enter(patience);
      if (permit !== undefined) await permit;
      try {
        return await work(fill);
      } finally {
        limiter.leave();
      }
    } catch (error) {
      throw error instanceof Fault ? error : new Fault('a load of the live cache failed', { cause: error });
    } finally {
      this.#running.delete(key);
    }
  }
}
