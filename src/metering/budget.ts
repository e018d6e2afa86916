/** The amount of one budget, caller and period, or of a tenant's monthly tokens, as this process sees it. */

import type { Account, AccountUnit } from './account.ts';
import {
  type BudgetNumbers,
  HELD,
  LAST_RESERVATION,
  NUMBERS,
  PENDING,
  PER_MS,
  QUOTA,
  RESERVED,
  SINCE_MS,
  USED,
  USED_AT_MS,
} from './budget-numbers.ts';
import { smoothed } from './demand.ts';

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
  readonly numbers: BudgetNumbers;
  /** Called after an amount was released. */
  readonly onReleased: (budget: PeriodBudget) => void;
}

export class PeriodBudget implements Account {
  readonly unit: AccountUnit;
  /** Checks that wait for the store. */
  waiting = 0;
  /** Whether a statement's answer was lost, so that the store must report the hold before the process uses it. */
  uncertain = false;
  /** Whether the registry no longer has it. A check must not reserve from it. */
  forgotten = false;
  #numbers: Float64Array;
  #at: number;
  readonly #sums: BudgetSums;
  readonly #onReleased: (budget: PeriodBudget) => void;
  readonly tenant: string;
  readonly period: string;
  /** The end that the last request for the budget names: a period of one name ends at another time in another time zone. */
  endsMs: number;
  /** Whether it is that of a tenant's monthly tokens. */
  readonly isMonthly: boolean;
  spent = 0;
  /** Until this time, checks are rejected without the store, which recently reported that too little is left. */
  refusesUntilMs = Number.NEGATIVE_INFINITY;
  /** The amounts of the waiting checks. */
  waitingAmount = 0;
  /** The sum of all changes of the hold except grants, and the part of it that the store has confirmed. */
  changes = 0;
  confirmed = 0;

  constructor({ tenant, period, unit, endsMs }: BudgetKey, nowMs: number, parts: PeriodBudgetParts) {
    this.unit = unit;
    this.#numbers = parts.numbers.numbers;
    this.#at = parts.numbers.at;
    this.#sums = parts.sums;
    this.#onReleased = parts.onReleased;
    this.tenant = tenant;
    this.period = period;
    this.endsMs = endsMs;
    // The period of each other budget begins with a name and a space.
    this.isMonthly = !period.includes(' ');
    this.#set(USED, Number.NaN);
    this.#set(SINCE_MS, nowMs);
    this.#set(USED_AT_MS, nowMs);
  }

  get isBooked(): boolean {
    return this.unit !== 'places';
  }

  /** The amount that the store granted to this process, with the changes that the next statement reports. */
  get held(): number {
    return this.#get(HELD);
  }

  set held(amount: number) {
    this.#sums.held += amount - this.#get(HELD);
    this.#set(HELD, amount);
  }

  /** The amount of this process's requests in progress. */
  get reserved(): number {
    return this.#get(RESERVED);
  }

  set reserved(amount: number) {
    this.#sums.reserved += amount - this.#get(RESERVED);
    this.#set(RESERVED, amount);
  }

  /** Spent and held by all processes, as the store last reported; undefined before its first answer. */
  get used(): number | undefined {
    const used = this.#get(USED);
    return Number.isNaN(used) ? undefined : used;
  }

  set used(amount: number) {
    this.#set(USED, amount);
  }

  /** The limit sent with the last check. Every check carries the limit, so a raised limit takes effect at once. */
  get quota(): number {
    return this.#get(QUOTA);
  }

  /** The amount that the last request reserved. */
  get lastReservation(): number {
    return this.#get(LAST_RESERVATION);
  }

  get usedAtMs(): number {
    return this.#get(USED_AT_MS);
  }

  /** Held and not reserved; negative after reservations without a hold. */
  get available(): number {
    return this.#get(HELD) - this.#get(RESERVED);
  }

  /** Whether the process can forget the budget without losing anything. */
  get isIdle(): boolean {
    const { held, changes, confirmed, reserved, waiting, uncertain } = this;
    return held === 0 && changes === confirmed && reserved === 0 && waiting === 0 && !uncertain;
  }

  /** Returns the amount that all processes together may still hold at this limit, as the store last reported. */
  left(quota: number): number {
    return Math.max(0, quota - (this.used ?? quota));
  }

  /** Returns the amount that requests are expected to reserve in the next `ms`. */
  expectedIn(ms: number, nowMs: number): number {
    const passedMs = nowMs - this.#get(SINCE_MS);
    if (passedMs > 0) {
      this.#set(PER_MS, smoothed(this.#get(PER_MS), this.#get(PENDING), passedMs));
      this.#set(PENDING, 0);
      this.#set(SINCE_MS, nowMs);
    }
    return this.#get(PER_MS) * ms;
  }

  /** Records a check that needs the amount, before it reserves or waits. */
  request(amount: number, quota: number, nowMs: number): void {
    this.#set(QUOTA, quota);
    this.#set(LAST_RESERVATION, amount);
    this.#set(USED_AT_MS, nowMs);
    this.#set(PENDING, this.#get(PENDING) + amount);
  }

  /** Reports whether the limit leaves the amount to this process, as the store last reported. */
  isWithin(amount: number): boolean {
    // Nothing is less than a number that is not known.
    return !(this.#get(QUOTA) - this.#get(USED) + this.available < amount);
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
    this.#onReleased(this);
  }

  /** Changes the hold. The next statement reports the change to the store. */
  change(amount: number): void {
    this.held += amount;
    this.changes += amount;
  }

  /** Ends the use of the shared numbers and returns them, for another budget. */
  forget(): BudgetNumbers {
    const shared = { numbers: this.#numbers, at: this.#at };
    this.forgotten = true;
    this.#numbers = this.#numbers.slice(this.#at, this.#at + NUMBERS);
    this.#at = 0;
    return shared;
  }

  #get(place: number): number {
    return this.#numbers[this.#at + place] ?? 0;
  }

  #set(place: number, value: number): void {
    this.#numbers[this.#at + place] = value;
  }
}
