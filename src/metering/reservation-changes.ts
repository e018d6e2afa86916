/**
 * Sends renewals and releases of reservations that another process or the store keeps. They go in batches. Changes that
 * cannot be sent now wait, a bounded number. A later change of the same reservation replaces the earlier one.
 */

import { SingleFlight } from '../concurrency/single-flight.ts';
import { Fault } from '../domain/errors.ts';
import { Outage, type SharedParts } from './parts.ts';
import type { ReservationChange, ReservationStore } from './ports.ts';

interface ReservationChangesParts extends SharedParts {
  readonly store: ReservationStore;
  /** The lifetime of a renewed reservation, counted from the time at which the store receives the renewal. */
  readonly reservationTtlMs: number;
  readonly maxWaiting: number;
}

const BATCH = 1000;
const FLUSH_MS = 500;
const MAX_BATCHES = 20;

export class ReservationChanges {
  readonly #parts: ReservationChangesParts;
  readonly #outage: Outage;
  readonly #flush = new SingleFlight(() => this.#write());
  readonly #waiting = new Map<string, ReservationChange>();
  #flushedAtMs = Number.NEGATIVE_INFINITY;

  constructor(parts: ReservationChangesParts) {
    this.#parts = parts;
    this.#outage = new Outage(parts);
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** Sends a release at once, and a renewal with the next tick that is due. Never throws. */
  add(change: ReservationChange): void {
    const key = keyOf(change);
    const known = this.#waiting.get(key);
    // A release is final.
    if (known?.kind === 'release-collection') return;
    if (known === undefined && this.#waiting.size >= this.#parts.maxWaiting) {
      this.#parts.counts.changesDropped += 1;
      return;
    }
    this.#waiting.set(key, change);
    if (change.kind === 'release-collection') void this.flush();
  }

  /** Resolves when the changes that are due have been sent. */
  tick(): Promise<void> {
    const due = this.#waiting.size > 0 && this.#parts.monotonicMs() - this.#flushedAtMs >= FLUSH_MS;
    return due ? this.flush() : Promise.resolve();
  }

  /** Sends the waiting changes. Never rejects: changes that could not be sent continue to wait. */
  flush(): Promise<void> {
    this.#flushedAtMs = this.#parts.monotonicMs();
    return this.#flush.run();
  }

  /** Sends the waiting changes. For the end of the process. */
  async stop(): Promise<void> {
    await this.#flush.idle();
    if (this.#waiting.size > 0) await this.flush();
  }

  async #write(): Promise<void> {
    // The statement also carries changes that are added in this turn of the event loop.
    await Promise.resolve();
    for (let batch = 0; batch < MAX_BATCHES && this.#waiting.size > 0; batch++) {
      if (!(await this.#send(this.#takeBatch()))) return;
    }
  }

  #takeBatch(): readonly ReservationChange[] {
    const batch = this.#waiting.values().take(BATCH).toArray();
    for (const change of batch) this.#waiting.delete(keyOf(change));
    return batch;
  }

  /** @returns false if the store is unreachable */
  async #send(batch: readonly ReservationChange[]): Promise<boolean> {
    const { store, reservationTtlMs, counts, onFault } = this.#parts;
    counts.statements += 1;
    try {
      await store.changeReservations(batch, reservationTtlMs);
      this.#outage.answered();
      return true;
    } catch (error) {
      if (error instanceof Fault) {
        this.#outage.failed(error);
        this.#putBack(batch);
        return false;
      }
      counts.changesDropped += batch.length;
      onFault?.(error);
      return true;
    }
  }

  #putBack(batch: readonly ReservationChange[]): void {
    for (const change of batch) {
      const newer = this.#waiting.get(keyOf(change));
      if (newer === undefined || change.kind === 'release-collection') this.#waiting.set(keyOf(change), change);
    }
  }
}

function keyOf({ processId, counter }: ReservationChange): string {
  return `${processId} ${counter}`;
}
