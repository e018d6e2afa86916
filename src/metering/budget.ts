/** The tokens of one tenant and period, as this process sees them. */

import { Demand } from './demand.ts';

/** Tokens of all budgets together. Each budget updates them as it changes. */
export interface TokenSums {
  held: number;
  reserved: number;
}

export class TokenBudget {
  readonly tenant: string;
  readonly period: string;
  /** Milliseconds since the epoch. */
  readonly endsMs: number;
  readonly demand: Demand;
  #held = 0;
  #reserved = 0;
  readonly #sums: TokenSums;
  /** Tokens spent and held by all processes, as the store last reported; undefined before its first answer. */
  used: number | undefined;
  spent = 0;
  /** The quota sent with the last check. Every check carries the quota, so a raised quota takes effect at once. */
  quota = 0;
  /** Until this time, checks are rejected without the store, which recently reported that too few tokens are left. */
  refusesUntilMs = Number.NEGATIVE_INFINITY;
  /** The tokens that the last request reserved. */
  lastReservation = 0;
  usedAtMs: number;
  /** Checks that wait for the store, and their tokens. */
  waiting = 0;
  waitingTokens = 0;
  /** The sum of all changes of the hold except grants, and the part of it that the store has confirmed. */
  changes = 0;
  confirmed = 0;
  /** Whether a statement's answer was lost, so that the store must report the hold before the process uses it. */
  uncertain = false;

  constructor(tenant: string, period: string, endsMs: number, nowMs: number, sums: TokenSums) {
    this.tenant = tenant;
    this.period = period;
    this.endsMs = endsMs;
    this.demand = new Demand(nowMs);
    this.usedAtMs = nowMs;
    this.#sums = sums;
  }

  /** Tokens that the store granted to this process, with the changes that the next statement reports. */
  get held(): number {
    return this.#held;
  }

  set held(tokens: number) {
    this.#sums.held += tokens - this.#held;
    this.#held = tokens;
  }

  /** Tokens of this process's requests in progress. */
  get reserved(): number {
    return this.#reserved;
  }

  set reserved(tokens: number) {
    this.#sums.reserved += tokens - this.#reserved;
    this.#reserved = tokens;
  }

  /** Held and not reserved; negative after reservations without a hold. */
  get available(): number {
    return this.held - this.reserved;
  }

  /** Whether the process can forget the budget without losing anything. */
  get isIdle(): boolean {
    const { held, changes, confirmed, reserved, waiting, uncertain } = this;
    return held === 0 && changes === confirmed && reserved === 0 && waiting === 0 && !uncertain;
  }

  /** Returns the tokens that all processes together may still hold at this quota, as the store last reported. */
  left(quota: number): number {
    return this.used === undefined ? 0 : Math.max(0, quota - this.used);
  }

  reserve(amount: number): void {
    this.reserved += amount;
  }

  /** Ends a reservation. The spent tokens leave the hold; the others are available again. */
  release(amount: number, spent: number): void {
    this.reserved -= amount;
    this.change(-Math.min(amount, spent));
    // The released tokens may be enough for the next check.
    this.refusesUntilMs = Number.NEGATIVE_INFINITY;
  }

  /** Changes the hold. The next statement reports the change to the store. */
  change(tokens: number): void {
    this.held += tokens;
    this.changes += tokens;
  }
}
