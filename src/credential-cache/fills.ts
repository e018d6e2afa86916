/** The running fills of one cache: one fill for each key, within the limits of the key's class. */

import { Fault } from '../domain/errors.ts';
import type { LoadLimiter, Patience } from './load-limiter.ts';

export interface Fill {
  /** The highest sequence number of a change of this key that was applied after the load began; -1 = none. */
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
   * Runs `work` when the limiter grants a permit, or joins the running fill of the key.
   * @param work resolves to whether its value was stored; runs only if no fill of the key is running
   * @returns the same promise for all callers that share the fill. Rejects with a Fault; a failed fill stores nothing.
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
      throw error instanceof Fault ? error : new Fault('a load of the credential cache failed', { cause: error });
    } finally {
      this.#running.delete(key);
    }
  }
}
