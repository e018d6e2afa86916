/**
 * Books the ends of requests in batches. Ends that cannot be booked now wait, a bounded number. After each failure, the
 * settler halves its batch, so that neither an end that the store rejects, nor ends that the store cannot book together
 * within its timeout, hold up the others. It drops an end that the store rejects in a batch of its own. If the store
 * does not know the issuer of an end, the settler retries for UNKNOWN_FOR_MS: after a failover to a standby that
 * lagged, the store knows a recently started process only after that process has sent a statement.
 */

import { BoundedQueue } from '../concurrency/bounded-queue.ts';
import { SingleFlight } from '../concurrency/single-flight.ts';
import { Fault } from '../domain/errors.ts';
import { chargedBatch } from './charged-batch.ts';
import { Outage, type SharedParts } from './parts.ts';
import type { Settlement, SettlementStore } from './ports.ts';

interface SettlerParts extends SharedParts {
  readonly store: SettlementStore;
  readonly maxWaiting: number;
  /** Called with each settlement that is booked, now or before. */
  readonly onBooked: (settlement: Settlement) => void;
}

interface QueuedSettlement {
  readonly settlement: Settlement;
  readonly reportedAtMs: number;
}

const BATCH = 500;
const FLUSH_MS = 250;
const MAX_BATCHES = 20;
/**
 * Twice the longest time between two statements of a process. An issuer that the store does not know after it does not
 * exist.
 */
const UNKNOWN_FOR_MS = 10_000;
const UNKNOWN_RETRY_MS = 1000;

export class Settler {
  readonly #parts: SettlerParts;
  readonly #queue: BoundedQueue<QueuedSettlement>;
  readonly #outage: Outage;
  readonly #flush = new SingleFlight(() => this.#write());
  /** Ends whose issuer the store did not know when they were last tried. */
  #unknown: QueuedSettlement[] = [];
  #retriedAtMs = Number.NEGATIVE_INFINITY;
  /** The largest number of ends in the next batch: half of a batch that failed, twice one that was booked. */
  #most = BATCH;
  #flushedAtMs = Number.NEGATIVE_INFINITY;

  constructor(parts: SettlerParts) {
    this.#parts = parts;
    this.#queue = new BoundedQueue(parts.maxWaiting);
    this.#outage = new Outage(parts);
  }

  get waiting(): number {
    return this.#queue.length + this.#unknown.length;
  }

  add(settlement: Settlement): void {
    if (this.waiting >= this.#parts.maxWaiting) this.#parts.counts.dropped += 1;
    else this.#queue.push({ settlement, reportedAtMs: this.#parts.monotonicMs() });
  }

  /** Books the queue if it has a whole batch or FLUSH_MS have passed. Resolves when it is booked. */
  tick(): Promise<void> {
    const now = this.#parts.monotonicMs();
    if (now - this.#retriedAtMs >= UNKNOWN_RETRY_MS) this.#retryUnknown(now);
    const due = this.#queue.length >= BATCH || (this.#queue.length > 0 && now - this.#flushedAtMs >= FLUSH_MS);
    return due ? this.flush() : Promise.resolve();
  }

  /** Books the queue. Never rejects: ends that could not be booked stay in the queue. */
  flush(): Promise<void> {
    this.#flushedAtMs = this.#parts.monotonicMs();
    return this.#flush.run();
  }

  /** Books the queue while that succeeds. For the end of the process. */
  async stop(): Promise<void> {
    await this.#flush.idle();
    this.#retryUnknown(this.#parts.monotonicMs());
    let before = Number.POSITIVE_INFINITY;
    while (this.#queue.length > 0 && this.#queue.length < before) {
      before = this.#queue.length;
      await this.flush();
    }
  }

  async #write(): Promise<void> {
    for (let batch = 0; batch < MAX_BATCHES && this.#queue.length > 0; batch++) {
      const ends = this.#queue.peek(this.#most);
      const booked = chargedBatch(ends, this.#most, ({ settlement }) => settlement.charges.length);
      if (!(await this.#book(booked))) return;
    }
  }

  /** @returns false if the store is unreachable */
  async #book(batch: readonly QueuedSettlement[]): Promise<boolean> {
    const { store, processId, counts, onFault } = this.#parts;
    counts.statements += 1;
    try {
      const settlements = batch.map(({ settlement }) => settlement);
      const { booked, unknownProcesses } = await store.settle(processId, settlements);
      this.#done(batch);
      this.#outage.answered();
      const unknown = new Set(unknownProcesses);
      this.#keepUnknown(batch.filter(({ settlement }) => unknown.has(settlement.processId)));
      const known = settlements.filter((settlement) => !unknown.has(settlement.processId));
      counts.settled += booked;
      // An issuer whose first statement ran at the same time counts as unknown although its ends were booked.
      counts.duplicates += Math.max(0, known.length - booked);
      for (const settlement of known) this.#parts.onBooked(settlement);
      return true;
    } catch (error) {
      this.#most = Math.ceil(batch.length / 2);
      if (error instanceof Fault) {
        this.#outage.failed(error);
        return false;
      }
      if (batch.length > 1) return true;
      onFault?.(error);
      counts.dropped += 1;
      this.#done(batch);
      return true;
    }
  }

  #keepUnknown(unknown: readonly QueuedSettlement[]): void {
    const now = this.#parts.monotonicMs();
    for (const queued of unknown) {
      if (now - queued.reportedAtMs < UNKNOWN_FOR_MS) this.#unknown.push(queued);
      else this.#parts.counts.unknown += 1;
    }
  }

  #retryUnknown(now: number): void {
    if (this.#unknown.length > 0) this.#retriedAtMs = now;
    // The queue has room, because both together are within its capacity.
    for (const queued of this.#unknown.splice(0)) this.#queue.push(queued);
  }

  #done(batch: readonly QueuedSettlement[]): void {
    this.#queue.drop(batch.length);
    this.#most = Math.min(BATCH, 2 * this.#most);
    const [first] = batch;
    if (first !== undefined) this.#parts.counts.settlementLagMs = this.#parts.monotonicMs() - first.reportedAtMs;
  }
}
