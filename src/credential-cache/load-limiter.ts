/**
 * Bounds the concurrent loads of one class. Other loads wait, fairly between clients, and only while a request waits
 * for them. Each class has a limiter of its own, so a flood in one class takes no capacity from another.
 */

import { Fault } from '../domain/errors.ts';
import type { CacheLoadStats } from '../telemetry/cache-metrics.ts';
import { FairQueue } from './fair-queue.ts';

interface LoadLimiterParts {
  readonly permits: number;
  /** Loads that wait for a permit. If the queue is full, the client with the most loads in it loses its newest one. */
  readonly maxWaiting: number;
  readonly monotonicMs: () => number;
}

/** The client that a load runs for, and how long a request waits for the load. */
export interface Patience {
  /** The client that sent the request, as the unit of fairness; empty if it is not known. */
  readonly client: string;
  /** The monotonic time, in milliseconds, after which no request waits for the load. The load must not begin later. */
  untilMs: number;
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
   * @returns undefined if the permit is taken already, otherwise a promise for it. Rejects with a Fault if too many
   *   loads wait, or if the patience ends before a permit is free. `patience.untilMs` may be raised while the load
   *   waits.
   */
  enter(patience: Patience): Promise<void> | undefined {
    if (this.#inFlight < this.#parts.permits) {
      this.#inFlight++;
      return undefined;
    }
    if (this.#queue.size >= this.#parts.maxWaiting) {
      this.#rejected++;
      const dropped = this.#queue.dropFor(patience.client);
      const full = new Fault('too many loads of the credential cache are waiting');
      if (dropped === undefined) return Promise.reject(full);
      dropped.permit.reject(full);
    }
    const permit = Promise.withResolvers<void>();
    this.#queue.push(patience.client, { patience, permit });
    return permit.promise;
  }

  /** Returns a permit, which goes to the next load that a request waits for. */
  leave(): void {
    const nowMs = this.#parts.monotonicMs();
    for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) {
      if (nowMs < next.patience.untilMs) {
        next.permit.resolve();
        return;
      }
      this.#abandoned++;
      next.permit.reject(new Fault('no request waits for this load of the credential cache any longer'));
    }
    this.#inFlight--;
  }

  stats(): CacheLoadStats {
    return {
      inFlight: this.#inFlight,
      waiting: this.#queue.size,
      rejected: this.#rejected,
      abandoned: this.#abandoned,
    };
  }
}
