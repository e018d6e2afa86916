/** One tenant's tokens of one period, as this process sees them. */

import { Demand } from './demand.ts';

/** Tokens of all budgets together, kept by each budget as it changes. */
export interface TokenSums {
  held: number;
  reserved: number;
}

export class Budget {
  readonly tenant: string;
  readonly period: string;
  /** Milliseconds since the epoch. */
  readonly endsMs: number;
  readonly demand: Demand;
  #held = 0;
  #reserved = 0;
  readonly #sums: TokenSums;
  /** At the store's last word: spent and held by all; undefined = it has not spoken yet. */
  used: number | undefined;
  spent = 0;
  /** Of the last check; it comes with every one, and a raised quota counts at once. */
  quota = 0;
  /** Until then the store need not be asked again whether there is more: it had too little a moment ago. */
  refusesUntilMs = Number.NEGATIVE_INFINITY;
  /** What one request reserved last. */
  lastReservation = 0;
  requestedAtMs: number;
  /** Requests that wait for the store, and their tokens. */
  waiting = 0;
  waitingTokens = 0;
  /** The sum of all changes of the hold that were not grants, and that of which the store is known to know. */
  changes = 0;
  confirmed = 0;
  /** A statement's answer was lost: what is held here is to be heard again before anything else is asked. */
  uncertain = false;

  constructor(tenant: string, period: string, endsMs: number, nowMs: number, sums: TokenSums) {
    this.tenant = tenant;
    this.period = period;
    this.endsMs = endsMs;
    this.demand = new Demand(nowMs);
    this.requestedAtMs = nowMs;
    this.#sums = sums;
  }

  /** Tokens that the store granted to this process, changed by what the next statement tells the store. */
  get held(): number {
    return this.#held;
  }

  set held(tokens: number) {
    this.#sums.held += tokens - this.#held;
    this.#held = tokens;
  }

  /** Tokens of requests under way in this process. */
  get reserved(): number {
    return this.#reserved;
  }

  set reserved(tokens: number) {
    this.#sums.reserved += tokens - this.#reserved;
    this.#reserved = tokens;
  }

  /** Held and not reserved; negative after reservations without a hold. */
  get spare(): number {
    return this.held - this.reserved;
  }

  /** Nothing would be lost if it were forgotten. */
  get isIdle(): boolean {
    const { held, changes, confirmed, reserved, waiting, uncertain } = this;
    return held === 0 && changes === confirmed && reserved === 0 && waiting === 0 && !uncertain;
  }

  /** What all processes together may still reserve at this quota, as the store saw it last. */
  left(quota: number): number {
    return this.used === undefined ? 0 : Math.max(0, quota - this.used);
  }

  reserve(amount: number): void {
    this.reserved += amount;
  }

  /** A request ended, or was given up: what it did not spend is spare again, and what it spent is no longer held but spent. */
  release(amount: number, spent: number): void {
    this.reserved -= amount;
    this.change(-Math.min(amount, spent));
    // What was known to be too little may be enough now.
    this.refusesUntilMs = Number.NEGATIVE_INFINITY;
  }

  /** The store is told with the next statement. */
  change(tokens: number): void {
    this.held += tokens;
    this.changes += tokens;
  }
}
