/**
 * Bounds the loads of one class that run at once, and lets the others wait: fairly between clients, and only while a request still waits
 * for them. Each class of loads has a limiter of its own, so that a flood in one class takes nothing from another.
 */

import { Fault } from '../domain/errors.ts';
import { FairQueue } from './fair-queue.ts';

export interface LoadLimiterParts {
  /** Loads that run at once. */
  readonly permits: number;
  /** Loads that wait for a permit. Beyond it the client with most of them in the queue loses its newest. */
  readonly maxWaiting: number;
  readonly monotonicMs: () => number;
}

/** On whose behalf a load runs, and how long a request waits for it. */
export interface Patience {
  /** The client that the request came from, as the unit of fairness; empty when it is not known. */
  readonly client: string;
  /** Monotonic milliseconds: from then on no request waits for the load, and it need not begin. */
  untilMs: number;
}

export interface LimiterStats {
  readonly inFlight: number;
  readonly waiting: number;
  /** Loads that were rejected because too many were waiting. */
  readonly rejected: number;
  /** Loads that never began because no request waited for them any longer. */
  readonly abandoned: number;
}

interface Waiting {
  readonly patience: Patience;
  readonly permit: PromiseWithResolvers<void>;
}

export class LoadLimiter {
  readonly #parts: LoadLimiterParts;
  readonly #queue = new FairQueue<Waiting>();
  #inFlight = 0;
  #rejected = 0;
  #abandoned = 0;

  constructor(parts: LoadLimiterParts) {
    this.#parts = parts;
  }

  /**
   * Takes a permit. The holder returns it with `leave`.
   * @returns undefined when the permit is taken already; else a promise for it. Rejects with a Fault when too many wait, or when the
   *   patience is over before a permit is free. `patience.untilMs` may be raised while the load waits.
   */
  enter(patience: Patience): Promise<void> | undefined {
    if (this.#inFlight < this.#parts.permits) {
      this.#inFlight++;
      return undefined;
    }
    if (this.#queue.size >= this.#parts.maxWaiting) {
      this.#rejected++;
      const dropped = this.#queue.dropFor(patience.client);
      const full = new Fault('too many loads of the live cache are waiting');
      if (dropped === undefined) return Promise.reject(full);
      dropped.permit.reject(full);
    }
    const permit = Promise.withResolvers<void>();
    this.#queue.push(patience.client, { patience, permit });
    return permit.promise;
  }

  /** Returns a permit, which goes to the next load that a request still waits for. */
  leave(): void {
    const nowMs = this.#parts.monotonicMs();
    for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) {
      if (nowMs < next.patience.untilMs) {
        next.permit.resolve();
        return;
      }
      this.#abandoned++;
      next.permit.reject(new Fault('no request waits for this load of the live cache any longer'));
    }
    this.#inFlight--;
  }

  stats(): LimiterStats {
    return {
      inFlight: this.#inFlight,
      waiting: this.#queue.size,
      rejected: this.#rejected,
      abandoned: this.#abandoned,
    };
  }
}
