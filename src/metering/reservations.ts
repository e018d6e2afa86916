/**
 * The amounts that requests in progress have reserved, by the number of their reservation.
 *
 * A reservation has a list of accounts, which requests with the same plan share, and an amount for each unit. Each takes one slot of arrays of plain numbers, because there may be a million and the garbage collector
 * must not visit each. Slots that expire in the same period form a doubly linked list. Adding, renewing and ending a
 * reservation therefore takes constant time, and a search for expired ones reads only the list of the earliest period.
 */

import type { Account, Amounts } from './account.ts';

export interface EndedReservation extends Amounts {
  readonly accounts: readonly Account[];
}

/** A reservation may outlive its lifetime by at most this time. */
export const EXPIRY_PERIOD_MS = 250;
const NONE = -1;
const FIRST_SLOTS = 1024;
/** A map that grows is copied at once. Many small maps keep each copy short. */
const SHARDS = 64;

export class Reservations {
  /** From the number of a reservation to its slot. The number's remainder selects the map. */
  readonly #slots = Array.from({ length: SHARDS }, () => new Map<number, number>());
  /** Undefined in free slots. */
  readonly #accounts: (readonly Account[] | undefined)[] = [];
  #counters = new Float64Array(FIRST_SLOTS);
  #tokens = new Float64Array(FIRST_SLOTS);
  #money = new Float64Array(FIRST_SLOTS);
  #periods = new Float64Array(FIRST_SLOTS);
  #previous = new Int32Array(FIRST_SLOTS);
  /** The next slot in the list of the period, or in the list of free slots. */
  #next = new Int32Array(FIRST_SLOTS);
  #free = NONE;
  /** The first slot of each period's list. */
  readonly #lists = new Map<number, number>();
  /** No list belongs to an earlier period. */
  #earliest = Number.POSITIVE_INFINITY;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** @param counter a number that is not in use */
  add(counter: number, accounts: readonly Account[], { tokens, money }: Amounts, expiresAtMs: number): void {
    const slot = this.#takeFree();
    this.#slotsOf(counter).set(counter, slot);
    this.#accounts[slot] = accounts;
    this.#counters[slot] = counter;
    this.#tokens[slot] = tokens;
    this.#money[slot] = money;
    this.#link(slot, periodOf(expiresAtMs));
    this.#size += 1;
  }

  /** Extends a reservation; never shortens it. Returns false if there is no such reservation. */
  renew(counter: number, expiresAtMs: number): boolean {
    const slot = this.#slotsOf(counter).get(counter);
    if (slot === undefined) return false;
    const period = periodOf(expiresAtMs);
    if (period > (this.#periods[slot] ?? 0)) {
      this.#unlink(slot);
      this.#link(slot, period);
    }
    return true;
  }

  take(counter: number): EndedReservation | undefined {
    const slot = this.#slotsOf(counter).get(counter);
    return slot === undefined ? undefined : this.#remove(slot);
  }

  /** Removes the accounts that are not booked from a reservation, and returns it with these alone. */
  takeUnbooked(counter: number): EndedReservation | undefined {
    const slot = this.#slotsOf(counter).get(counter);
    const accounts = slot === undefined ? undefined : this.#accounts[slot];
    if (slot === undefined || accounts === undefined || accounts.every(isBooked)) return undefined;
    // Requests with the same plan share the list.
    this.#accounts[slot] = accounts.filter(isBooked);
    const unbooked = accounts.filter((account) => !account.isBooked);
    return { accounts: unbooked, tokens: this.#tokens[slot] ?? 0, money: this.#money[slot] ?? 0 };
  }

  /** Removes and returns a reservation that has expired. */
  takeExpired(nowMs: number): EndedReservation | undefined {
    return this.#earliestPeriod() < periodOf(nowMs) ? this.takeOldest() : undefined;
  }

  /** Removes and returns one of the reservations that expire first. */
  takeOldest(): EndedReservation | undefined {
    const slot = this.#lists.get(this.#earliestPeriod());
    return slot === undefined ? undefined : this.#remove(slot);
  }

  #earliestPeriod(): number {
    if (this.#size === 0) this.#earliest = Number.POSITIVE_INFINITY;
    // The number of steps is at most the number of periods in the longest lifetime, and each step happens once.
    else while (!this.#lists.has(this.#earliest)) this.#earliest += 1;
    return this.#earliest;
  }

  #remove(slot: number): EndedReservation | undefined {
    const accounts = this.#accounts[slot];
    if (accounts === undefined) return undefined;
    const counter = this.#counters[slot] ?? 0;
    this.#unlink(slot);
    this.#slotsOf(counter).delete(counter);
    this.#accounts[slot] = undefined;
    this.#next[slot] = this.#free;
    this.#free = slot;
    this.#size -= 1;
    return { accounts, tokens: this.#tokens[slot] ?? 0, money: this.#money[slot] ?? 0 };
  }

  #link(slot: number, period: number): void {
    const first = this.#lists.get(period) ?? NONE;
    this.#periods[slot] = period;
    this.#previous[slot] = NONE;
    this.#next[slot] = first;
    if (first !== NONE) this.#previous[first] = slot;
    this.#lists.set(period, slot);
    this.#earliest = Math.min(this.#earliest, period);
  }

  #unlink(slot: number): void {
    const previous = this.#previous[slot] ?? NONE;
    const next = this.#next[slot] ?? NONE;
    if (next !== NONE) this.#previous[next] = previous;
    if (previous !== NONE) this.#next[previous] = next;
    else if (next !== NONE) this.#lists.set(this.#periods[slot] ?? 0, next);
    else this.#lists.delete(this.#periods[slot] ?? 0);
  }

  #takeFree(): number {
    const slot = this.#free;
    if (slot !== NONE) {
      this.#free = this.#next[slot] ?? NONE;
      return slot;
    }
    const made = this.#accounts.length;
    this.#accounts.push(undefined);
    if (made >= this.#counters.length) this.#grow();
    return made;
  }

  #grow(): void {
    this.#counters = doubled(this.#counters, new Float64Array(2 * this.#counters.length));
    this.#tokens = doubled(this.#tokens, new Float64Array(2 * this.#tokens.length));
    this.#money = doubled(this.#money, new Float64Array(2 * this.#money.length));
    this.#periods = doubled(this.#periods, new Float64Array(2 * this.#periods.length));
    this.#previous = doubled(this.#previous, new Int32Array(2 * this.#previous.length));
    this.#next = doubled(this.#next, new Int32Array(2 * this.#next.length));
  }

  #slotsOf(counter: number): Map<number, number> {
    const slots = this.#slots[counter % SHARDS];
    if (slots === undefined) throw new RangeError('the number of a reservation is a whole number');
    return slots;
  }
}

function isBooked({ isBooked: booked }: Account): boolean {
  return booked;
}

function periodOf(ms: number): number {
  return Math.floor(ms / EXPIRY_PERIOD_MS);
}

function doubled<T extends Float64Array | Int32Array>(from: T, to: T): T {
  to.set(from);
  return to;
}
