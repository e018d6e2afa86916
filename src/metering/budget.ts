/** The amount of one budget, caller and period, or of a tenant's monthly tokens, as this process sees it. */

import type { Account, AccountUnit } from './account.ts';
import { Demand } from './demand.ts';

/** The amounts of all budgets of one unit together. Each budget updates them as it changes. */
export interface BudgetSums {
  held: number;
  reserved: number;
}

/** Identifies an amount for the store, which keeps it by `tenant` and `period`. */
export interface BudgetKey {
  readonly tenant: string;
  /** See `HoldRequest`. */
  readonly period: string;
  readonly unit: AccountUnit;
  /** Milliseconds since the epoch; infinite if the period does not end. */
  readonly endsMs: number;
}

interface PeriodBudgetParts {
  readonly sums: BudgetSums;
  /** Called after an amount was released. */
  readonly onReleased: (budget: PeriodBudget) => void;
}

export class PeriodBudget implements Account {
  readonly tenant: string;
  readonly period: string;
  readonly unit: AccountUnit;
  readonly endsMs: number;
  /** Whether it is that of a tenant's monthly tokens. */
  readonly isMonthly: boolean;
  readonly demand: Demand;
  #held = 0;
  #reserved = 0;
  readonly #parts: PeriodBudgetParts;
  /** Spent and held by all processes, as the store last reported; undefined before its first answer. */
  used: number | undefined;
  spent = 0;
  /** The limit sent with the last check. Every check carries the limit, so a raised limit takes effect at once. */
  quota = 0;
  /** Until this time, checks are rejected without the store, which recently reported that too little is left. */
  refusesUntilMs = Number.NEGATIVE_INFINITY;
  /** The amount that the last request reserved. */
  lastReservation = 0;
  usedAtMs: number;
  /** Checks that wait for the store, and their amounts. */
  waiting = 0;
  waitingAmount = 0;
  /** The sum of all changes of the hold except grants, and the part of it that the store has confirmed. */
  changes = 0;
  confirmed = 0;
  /** Whether a statement's answer was lost, so that the store must report the hold before the process uses it. */
  uncertain = false;
  /** Whether the registry no longer has it. A check must not reserve from it. */
  forgotten = false;

  constructor({ tenant, period, unit, endsMs }: BudgetKey, nowMs: number, parts: PeriodBudgetParts) {
    this.tenant = tenant;
    this.period = period;
    this.unit = unit;
    this.endsMs = endsMs;
    // The period of each other budget begins with a name and a space.
    this.isMonthly = !period.includes(' ');
    this.demand = new Demand(nowMs);
    this.usedAtMs = nowMs;
    this.#parts = parts;
  }

  /** The amount that the store granted to this process, with the changes that the next statement reports. */
  get held(): number {
    return this.#held;
  }

  set held(amount: number) {
    this.#parts.sums.held += amount - this.#held;
    this.#held = amount;
  }

  /** The amount of this process's requests in progress. */
  get reserved(): number {
    return this.#reserved;
  }

  set reserved(amount: number) {
    this.#parts.sums.reserved += amount - this.#reserved;
    this.#reserved = amount;
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

  /** Returns the amount that all processes together may still hold at this limit, as the store last reported. */
  left(quota: number): number {
    return this.used === undefined ? 0 : Math.max(0, quota - this.used);
  }

  /** Records a check that needs the amount, before it reserves or waits. */
  request(amount: number, quota: number, nowMs: number): void {
    this.quota = quota;
    this.lastReservation = amount;
    this.usedAtMs = nowMs;
    this.demand.record(amount);
  }

  /** Reports whether the limit leaves the amount to this process, as the store last reported. */
  isWithin(amount: number): boolean {
    return this.used === undefined || this.quota - this.used + this.available >= amount;
  }

  reserve(amount: number): void {
    this.reserved += amount;
  }

  /** Ends a reservation. The spent amount leaves the hold; the rest is available again. */
  release(amount: number, spent: number): void {
    this.reserved -= amount;
    this.change(-Math.min(amount, spent));
    // The released amount may be enough for the next check.
    this.refusesUntilMs = Number.NEGATIVE_INFINITY;
    this.#parts.onReleased(this);
  }

  /** Changes the hold. The next statement reports the change to the store. */
  change(amount: number): void {
    this.held += amount;
    this.changes += amount;
  }
}
