/**
 * Books the ends of requests in batches. What cannot be booked now waits, boundedly; what the store itself refuses is sought out one by
 * one and dropped, so that it holds up no other. An end whose issuer the store does not know is tried again for a while: after a fail-over
 * to a standby that lagged, the store knows a process that had just started only once that process has spoken to it.
 */

import { Fault } from '../domain/errors.ts';
import type { MeteringCounts } from './counts.ts';
import type { Settlement, SettlementStore } from './ports.ts';

export interface SettlerParts {
  readonly store: SettlementStore;
  readonly processId: string;
  readonly monotonicMs: () => number;
  readonly maxWaiting: number;
  readonly counts: MeteringCounts;
  /** Told of each settlement that is booked, now or before. */
  readonly onBooked: (settlement: Settlement) => void;
  /** Told once each time the store goes away, and of each settlement that it refuses. */
  readonly onFault?: (error: unknown) => void;
}

interface QueuedSettlement {
  readonly settlement: Settlement;
  readonly heardAtMs: number;
}

const BATCH = 500;
const FLUSH_MS = 250;
/** Of one flush; more come with the next. */
const MAX_BATCHES = 20;
/** A process speaks to the store every 5 s at least, so after twice that an issuer that the store still does not know is none. */
const UNKNOWN_FOR_MS = 10_000;
const UNKNOWN_RETRY_MS = 1000;

export class Settler {
  readonly #parts: SettlerParts;
  #waiting: QueuedSettlement[] = [];
  /** Ends whose issuer the store did not know when they were tried. */
  #unknown: QueuedSettlement[] = [];
  #retriedAtMs = Number.NEGATIVE_INFINITY;
  /** How many at the head of the queue are to be booked one at a time, because one of them was refused. */
  #suspects = 0;
  #flushing: Promise<void> | undefined;
  #failing = false;
  #flushedAtMs = Number.NEGATIVE_INFINITY;

  constructor(parts: SettlerParts) {
    this.#parts = parts;
  }

  get waiting(): number {
    return this.#waiting.length + this.#unknown.length;
  }

  add(settlement: Settlement): void {
    if (this.waiting >= this.#parts.maxWaiting) this.#parts.counts.dropped += 1;
    else this.#waiting.push({ settlement, heardAtMs: this.#parts.monotonicMs() });
  }

  /** Books what waits, when it is enough or has waited long enough. Resolves when it is booked. */
  tick(): Promise<void> {
    this.#retryUnknown();
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
    this.#waiting.push(...this.#unknown.splice(0));
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
  async #book(taken: readonly QueuedSettlement[]): Promise<boolean> {
    const { store, processId, counts, onFault } = this.#parts;
    counts.statements += 1;
    try {
      const settlements = taken.map(({ settlement }) => settlement);
      const { booked, unknownProcesses } = await store.settle(processId, settlements);
      this.#done(taken);
      const strangers = new Set(unknownProcesses);
      const known =
        strangers.size === 0 ? settlements : settlements.filter((settlement) => !strangers.has(settlement.processId));
      if (strangers.size > 0) this.#keepUnknown(taken.filter(({ settlement }) => strangers.has(settlement.processId)));
      counts.settled += booked;
      // An issuer that spoke to the store while the statement ran counts as unknown although its ends were booked.
      counts.duplicates += Math.max(0, known.length - booked);
      for (const settlement of known) this.#parts.onBooked(settlement);
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

  #keepUnknown(unknown: readonly QueuedSettlement[]): void {
    const now = this.#parts.monotonicMs();
    for (const waiting of unknown) {
      if (now - waiting.heardAtMs < UNKNOWN_FOR_MS) this.#unknown.push(waiting);
      else this.#parts.counts.unknown += 1;
    }
  }

  #retryUnknown(): void {
    if (this.#unknown.length === 0) return;
    const now = this.#parts.monotonicMs();
    if (now - this.#retriedAtMs < UNKNOWN_RETRY_MS) return;
    this.#retriedAtMs = now;
    this.#waiting.push(...this.#unknown.splice(0));
  }

  #done(taken: readonly QueuedSettlement[]): void {
    this.#waiting = this.#waiting.slice(taken.length);
    this.#suspects = Math.max(0, this.#suspects - taken.length);
    const [first] = taken;
    if (first !== undefined) this.#parts.counts.settlementLagMs = this.#parts.monotonicMs() - first.heardAtMs;
  }
}
