/** The reservations of this process that have not ended: the ways in which they end, and their counts. */

import { type Account, type AccountUnit, type Amounts, amountIn } from './account.ts';
import type { SharedParts } from './parts.ts';
import { type EndedReservation, Reservations } from './reservations.ts';

interface OutstandingParts extends Pick<SharedParts, 'counts'> {
  /** The lifetime of a reservation that is neither settled nor renewed. */
  readonly reservationTtlMs: number;
  readonly maxReservations: number;
}

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
  add(counter: number, accounts: readonly Account[], amounts: Amounts, now: number): void {
    const { counts, maxReservations, reservationTtlMs } = this.#parts;
    if (this.#reservations.size >= maxReservations) this.#expired(this.#reservations.takeOldest());
    counts.tokensReserved += amounts.tokens;
    this.#reservations.add(counter, accounts, amounts, now + reservationTtlMs);
  }

  /** Releases what is not booked of the reservation of a request that has ended. The rest lasts until `settled`. */
  ended(counter: number, spent: Amounts): void {
    const unbooked = this.#reservations.takeUnbooked(counter);
    if (unbooked !== undefined) release(unbooked, spent);
  }

  /** Ends the reservation of a request whose usage is booked. */
  settled(counter: number, spent: Amounts): void {
    const ended = this.#reservations.take(counter);
    if (ended === undefined) return;
    this.#parts.counts.tokensSettled += ended.tokens;
    release(ended, spent);
  }

  /** Ends the reservation of a cancelled check. */
  release(counter: number): void {
    const ended = this.#reservations.take(counter);
    if (ended === undefined) return;
    this.#parts.counts.reservationsReleased += 1;
    this.#parts.counts.tokensReleased += ended.tokens;
    release(ended, undefined);
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
    this.#parts.counts.tokensExpired += expired.tokens;
    release(expired, undefined);
    return true;
  }
}

/** @param spent undefined = nothing */
function release(ended: EndedReservation, spent: Amounts | undefined): void {
  for (const account of ended.accounts) {
    account.release(amountIn(account.unit, ended), spent === undefined ? 0 : spentIn(account.unit, spent));
  }
}

/** A place is free again after the request, so nothing of it is spent. */
function spentIn(unit: AccountUnit, spent: Amounts): number {
  return unit === 'places' ? 0 : amountIn(unit, spent);
}
