/** The reservations of tokens that this process made and that have no end yet: how each comes to its end, and the counts of that. */

import type { Budget } from './budget.ts';
import type { MeteringCounts } from './counts.ts';
import { type EndedReservation, Reservations } from './reservations.ts';

export interface OutstandingParts {
  /** A reservation lives so long without being settled or renewed. */
  readonly reservationTtlMs: number;
  readonly maxReservations: number;
  readonly counts: MeteringCounts;
  /** Called with each reservation that has ended, and the tokens of it that were spent. */
  readonly onEnded: (ended: EndedReservation, spent: number) => void;
}

/** Expired in one tick at most. */
export const MAX_EXPIRED = 5000;

export class Outstanding {
  readonly #parts: OutstandingParts;
  readonly #reservations = new Reservations();

  constructor(parts: OutstandingParts) {
    this.#parts = parts;
  }

  get size(): number {
    return this.#reservations.size;
  }

  /** Beyond the bound, one of those that expire first expires early. */
  add(counter: number, budget: Budget, amount: number, now: number): void {
    const { counts, maxReservations, reservationTtlMs } = this.#parts;
    if (this.#reservations.size >= maxReservations) this.#expired(this.#reservations.takeOldest());
    counts.tokensReserved += amount;
    this.#reservations.add(counter, budget, amount, now + reservationTtlMs);
  }

  /** The request is over, and what it spent is booked. */
  settled(counter: number, spent: number): void {
    const ended = this.#reservations.take(counter);
    if (ended === undefined) return;
    this.#parts.counts.tokensSettled += ended.amount;
    this.#parts.onEnded(ended, spent);
  }

  /** The check was cancelled. */
  release(counter: number): void {
    const ended = this.#reservations.take(counter);
    if (ended === undefined) return;
    this.#parts.counts.reservationsReleased += 1;
    this.#parts.counts.tokensReleased += ended.amount;
    this.#parts.onEnded(ended, 0);
  }

  /** @param heardAtMs when it was heard that the request is still running */
  renew(counter: number, heardAtMs: number): void {
    const { counts, reservationTtlMs } = this.#parts;
    if (this.#reservations.renew(counter, heardAtMs + reservationTtlMs)) counts.reservationsRenewed += 1;
  }

  /** Ends those that had expired by then, a bounded number at once. */
  expire(nowMs: number): void {
    for (let i = 0; i < MAX_EXPIRED; i++) if (!this.#expired(this.#reservations.takeExpired(nowMs))) return;
  }

  #expired(expired: EndedReservation | undefined): boolean {
    if (expired === undefined) return false;
    this.#parts.counts.reservationsExpired += 1;
    this.#parts.counts.tokensExpired += expired.amount;
    this.#parts.onEnded(expired, 0);
    return true;
  }
}
