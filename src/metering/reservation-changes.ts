/**
 * Renewals and releases of reservations that another process holds, or the store itself, on their way to the store. They go in batches.
 * A change that cannot be sent now waits, boundedly; a later change of the same reservation takes its place.
 */

import { Fault } from '../domain/errors.ts';
import type { MeteringCounts } from './counts.ts';
import type { ReservationChange, ReservationStore } from './ports.ts';

export interface ReservationChangesParts {
  readonly store: ReservationStore;
  /** What a renewed reservation lives from when the store hears of it. */
  readonly reservationTtlMs: number;
  readonly monotonicMs: () => number;
  readonly maxWaiting: number;
  readonly counts: MeteringCounts;
  /** Called once each time the store goes away, and for each batch that it refuses. */
  readonly onFault?: (error: unknown) => void;
}

const BATCH = 1000;
const FLUSH_MS = 500;
/** In one flush; more go with the next. */
const MAX_BATCHES = 20;

export class ReservationChanges {
  readonly #parts: ReservationChangesParts;
  #waiting = new Map<string, ReservationChange>();
  #flushing: Promise<void> | undefined;
  #flushedAtMs = Number.NEGATIVE_INFINITY;
  #failing = false;

  constructor(parts: ReservationChangesParts) {
    this.#parts = parts;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** A release is sent at once, a renewal with the next tick that is due. Never throws. */
  add(change: ReservationChange): void {
    const key = keyOf(change);
    const known = this.#waiting.get(key);
    // Nothing follows a release.
    if (known?.kind === 'release-collection') return;
    if (known === undefined && this.#waiting.size >= this.#parts.maxWaiting) {
      this.#parts.counts.changesDropped += 1;
      return;
    }
    this.#waiting.set(key, change);
    if (change.kind === 'release-collection') void this.flush();
  }

  /** Resolves when what is due has been sent. */
  tick(): Promise<void> {
    const due = this.#waiting.size > 0 && this.#parts.monotonicMs() - this.#flushedAtMs >= FLUSH_MS;
    return due ? this.flush() : Promise.resolve();
  }

  /** Sends what waits. Never rejects: changes that could not be sent go on waiting. */
  flush(): Promise<void> {
    this.#flushedAtMs = this.#parts.monotonicMs();
    this.#flushing ??= this.#write().finally(() => {
      this.#flushing = undefined;
    });
    return this.#flushing;
  }

  /** Sends what waits now, for the end of the process. */
  async stop(): Promise<void> {
    await this.#flushing;
    if (this.#waiting.size > 0) await this.flush();
  }

  async #write(): Promise<void> {
    // Changes that come in this turn of the loop come along.
    await Promise.resolve();
    for (let batch = 0; batch < MAX_BATCHES && this.#waiting.size > 0; batch++) {
      if (!(await this.#send(this.#takeBatch()))) return;
    }
  }

  #takeBatch(): readonly ReservationChange[] {
    const batch: ReservationChange[] = [];
    for (const [key, change] of this.#waiting) {
      if (batch.length >= BATCH) break;
      this.#waiting.delete(key);
      batch.push(change);
    }
    return batch;
  }

  /** Returns false when there is no use in going on now. */
  async #send(batch: readonly ReservationChange[]): Promise<boolean> {
    const { store, reservationTtlMs, counts, onFault } = this.#parts;
    counts.statements += 1;
    try {
      await store.changeReservations(batch, reservationTtlMs);
      this.#failing = false;
      return true;
    } catch (error) {
      if (!(error instanceof Fault)) {
        counts.changesDropped += batch.length;
        onFault?.(error);
        return true;
      }
      if (!this.#failing) {
        counts.faults += 1;
        onFault?.(error);
      }
      this.#failing = true;
      this.#putBack(batch);
      return false;
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
