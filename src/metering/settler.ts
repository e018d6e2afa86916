/**
 * Books the ends of requests in batches. What cannot be booked now waits, boundedly; what the store itself refuses is sought out one by
 * one and dropped, so that it holds up no other.
 */

import { Fault } from '../domain/errors.ts';
import type { MeteringCounts } from './counts.ts';
import type { Settlement, SettlementStore } from './ports.ts';

export interface SettlerParts {
  readonly store: SettlementStore;
  readonly holder: string;
  readonly monotonicMs: () => number;
  readonly maxWaiting: number;
  readonly counts: MeteringCounts;
  /** Told of each settlement that is booked, now or before. */
  readonly onBooked: (settlement: Settlement) => void;
  /** Told once each time the store goes away, and of each settlement that it refuses. */
  readonly onFault?: (error: unknown) => void;
}

interface Waiting {
  readonly settlement: Settlement;
  readonly heardAtMs: number;
}

const BATCH = 500;
const FLUSH_MS = 250;
/** Of one flush; more come with the next. */
const MAX_BATCHES = 20;

export class Settler {
  readonly #parts: SettlerParts;
  #waiting: Waiting[] = [];
  /** How many at the head of the queue are to be booked one at a time, because one of them was refused. */
  #suspects = 0;
  #flushing: Promise<void> | undefined;
  #failing = false;
  #flushedAtMs = Number.NEGATIVE_INFINITY;

  constructor(parts: SettlerParts) {
    this.#parts = parts;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  add(settlement: Settlement): void {
    if (this.#waiting.length >= this.#parts.maxWaiting) this.#parts.counts.dropped += 1;
    else this.#waiting.push({ settlement, heardAtMs: this.#parts.monotonicMs() });
  }

  /** Books what waits, when it is enough or has waited long enough. Resolves when it is booked. */
  tick(): Promise<void> {
    if (this.#waiting.length === 0) return Promise.resolve();
    const due = this.#waiting.length >= BATCH || this.#parts.monotonicMs() - this.#flushedAtMs >= FLUSH_MS;
    return due ? this.flush() : Promise.resolve();
  }

  /** Books what waits. Never rejects: what could not be booked goes on waiting. */
  flush(): Promise<void> {
    this.#flushedAtMs = this.#parts.monotonicMs();
    this.#flushing ??= this.#write().finally(() => {
      this.#flushing = undefined;
    });
    return this.#flushing;
  }

  /** Books what waits now, for the end of the process. */
  async stop(): Promise<void> {
    await this.#flushing;
    let before = Number.POSITIVE_INFINITY;
    while (this.#waiting.length > 0 && this.#waiting.length < before) {
      before = this.#waiting.length;
      await this.flush();
    }
  }

  async #write(): Promise<void> {
    for (let batch = 0; batch < MAX_BATCHES && this.#waiting.length > 0; batch++) {
      const taken = this.#waiting.slice(0, this.#suspects > 0 ? 1 : BATCH);
      if (!(await this.#book(taken))) return;
    }
  }

  /** @returns false when there is no use in going on now */
  async #book(taken: readonly Waiting[]): Promise<boolean> {
    const { store, holder, counts, onFault } = this.#parts;
    counts.statements += 1;
    try {
      const settlements = taken.map(({ settlement }) => settlement);
      const { booked, unknown } = await store.settle(holder, settlements);
      this.#done(taken);
      counts.settled += booked;
      counts.unknown += unknown;
      counts.duplicates += taken.length - booked - unknown;
      for (const settlement of settlements) this.#parts.onBooked(settlement);
      this.#failing = false;
      return true;
    } catch (error) {
      if (error instanceof Fault) {
        if (!this.#failing) {
          counts.faults += 1;
          onFault?.(error);
        }
        this.#failing = true;
        return false;
      }
      if (taken.length > 1) {
        this.#suspects = taken.length;
        return true;
      }
      onFault?.(error);
      counts.dropped += 1;
      this.#done(taken);
      return true;
    }
  }

  #done(taken: readonly Waiting[]): void {
    this.#waiting = this.#waiting.slice(taken.length);
    this.#suspects = Math.max(0, this.#suspects - taken.length);
    const [first] = taken;
    if (first !== undefined) this.#parts.counts.settlementLagMs = this.#parts.monotonicMs() - first.heardAtMs;
  }
}
