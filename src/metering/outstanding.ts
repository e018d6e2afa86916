/** The token reservations of this process that have not ended: the ways in which they end, and their counts. */

import type { TokenBudget } from './budget.ts';
import type { SharedParts } from './parts.ts';
import { type EndedReservation, Reservations } from './reservations.ts';

interface OutstandingParts extends Pick<SharedParts, 'counts'> {
  /** The lifetime of a reservation that is neither settled nor renewed. */
  readonly reservationTtlMs: number;
  readonly maxReservations: number;
  /** Called with each reservation that has ended, and the tokens of it that were spent. */
  readonly onEnded: (ended: EndedReservation, spent: number) => void;
}

/** The largest number of reservations that expire in one tick. */
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

  /** Adds a reservation. If `maxReservations` is reached, one of those that expire first expires early. */
  add(counter: number, budget: TokenBudget, amount: number, now: number): void {
    const { counts, maxReservations, reservationTtlMs } = this.#parts;
    if (this.#reservations.size >= maxReservations) this.#expired(this.#reservations.takeOldest());
    counts.tokensReserved += amount;
    this.#reservations.add(counter, budget, amount, now + reservationTtlMs);
  }

  /** Ends the reservation of a request whose usage is booked. */
  settled(counter: number, spent: number): void {
    const ended = this.#reservations.take(counter);
    if (ended === undefined) return;
    this.#parts.counts.tokensSettled += ended.amount;
    this.#parts.onEnded(ended, spent);
  }

  /** Ends the reservation of a cancelled check. */
  release(counter: number): void {
    const ended = this.#reservations.take(counter);
    if (ended === undefined) return;
    this.#parts.counts.reservationsReleased += 1;
    this.#parts.counts.tokensReleased += ended.amount;
    this.#parts.onEnded(ended, 0);
  }

  /** @param seenAtMs a time at which the request was running */
  renew(counter: number, seenAtMs: number): void {
    const { counts, reservationTtlMs } = this.#parts;
    if (this.#reservations.renew(counter, seenAtMs + reservationTtlMs)) counts.reservationsRenewed += 1;
  }

  /** Ends the reservations that had expired at that time, at most MAX_EXPIRED. */
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
