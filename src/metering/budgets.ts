/**
 * Tokens per calendar month, held over all processes. The store grants each process a hold on what is left of a tenant's budget, ahead
 * of need, so that a check reserves what its request may spend from memory. When the request has ended, what it did spend is booked by
 * whichever process heard of it, and the reservation becomes spare again where it was made.
 *
 * - enough is spare here: reserved at once;
 * - the store had too little a moment ago: refused at once;
 * - otherwise the check waits for one statement, which carries the wishes of all who wait.
 *
 * Invariant: at every grant, what is spent and what all processes hold together is at most the quota; and no process reserves more than
 * it holds. What is not needed is given back. A reservation that nobody settles expires, and what a lost process held is taken away.
 *
 * While the store is away each process goes on with what it holds and with its fair share of what was left at the store's last word,
 * and reports afterwards what it reserved so. A budget that the store never spoke of, or a share that is used up, is a fault.
 */

import { Fault } from '../domain/errors.ts';
import { Budget } from './budget.ts';
import type { MeteringCounts } from './counts.ts';
import type { TokenAnswer, TokenAsk, TokenStore } from './ports.ts';
import { type Ended, Reservations } from './reservations.ts';
import { runsLow, sliceOf, surplusOf } from './slices.ts';

export interface BudgetsParts {
  readonly store: TokenStore;
  readonly holder: string;
  /** After so long a reservation that nobody settled is spare again, and a silent process's holds are taken away. */
  readonly reservationTtlMs: number;
  readonly monotonicMs: () => number;
  readonly maxBudgets: number;
  readonly maxReservations: number;
  readonly counts: MeteringCounts;
  /** Told once each time the store goes away. */
  readonly onFault?: (error: unknown) => void;
}

export interface TokenWish {
  readonly tenant: string;
  readonly period: string;
  readonly periodEndsMs: number;
  readonly quota: number;
  readonly amount: number;
  /** The reservation's number in this process. */
  readonly counter: number;
}

interface Waiter {
  readonly budget: Budget;
  readonly amount: number;
  readonly counter: number;
  readonly resolve: (reserved: boolean) => void;
  readonly reject: (error: unknown) => void;
  attempts: number;
}

interface Batch {
  readonly asks: readonly TokenAsk[];
  readonly budgets: readonly Budget[];
}

/** How long the store's word that there is too little counts: others may give back soon, unless it is all spent. */
const REFUSES_MS = 200;
const SPENT_REFUSES_MS = 2000;
/** How often to ask whether others settled reservations of this process, when nothing else is asked. */
const NEWS_MS = 1000;
const REVIEW_MS = 1000;
const FORGET_MS = 60_000;
/** Of a quota: below it every token is given back at once. */
const SCARCE_SHARE = 0.1;
const MAX_ASKS = 1000;
const MAX_WAITING = 10_000;
const MAX_ATTEMPTS = 4;

export class Budgets {
  readonly #parts: BudgetsParts;
  /** By tenant and period. */
  readonly #budgets = new Map<string, Budget>();
  /** By tenant: of the period asked for last. */
  readonly #current = new Map<string, Budget>();
  readonly #outstanding = new Reservations();
  /** Budgets that may have something to say to the store. */
  readonly #touched = new Set<Budget>();
  /** The same, but it may wait for a while, or for the next statement. */
  readonly #patient = new Set<Budget>();
  #waiting: Waiter[] = [];
  #heard: number[] = [];
  #asking: Promise<void> | undefined;
  #alone = false;
  #stopping = false;
  #holders = 1;
  #turn = 0;
  #heardAtMs: number;
  #askedAtMs: number;
  #reviewedAtMs: number;

  constructor(parts: BudgetsParts) {
    this.#parts = parts;
    const now = parts.monotonicMs();
    this.#heardAtMs = now;
    this.#askedAtMs = now;
    this.#reviewedAtMs = now;
  }

  /** True: reserved; false: there is too little left. A promise when only the store can say. Throws and rejects with a Fault. */
  reserve(wish: TokenWish, now = this.#parts.monotonicMs()): boolean | Promise<boolean> {
    const { amount, counter, quota } = wish;
    if (amount > quota) return false;
    const budget = this.#budget(wish, now);
    budget.quota = quota;
    budget.typical = amount;
    budget.askedAtMs = now;
    budget.demand.note(amount);
    // Whoever waits already is first.
    const known = budget.waiting > 0 ? undefined : this.#try(budget, amount, counter, now);
    return known ?? this.#wait(budget, amount, counter);
  }

  /** A request of this process is over, and what it spent is booked. */
  settled(counter: number, spent: number): void {
    const ended = this.#outstanding.take(counter);
    if (ended === undefined) return;
    this.#parts.counts.tokensSettled += ended.amount;
    this.#free(ended, spent);
  }

  /** Asks for what will be needed and gives back what is not; every 100 ms or so. Resolves when the store has answered. */
  tick(): Promise<void> {
    const now = this.#parts.monotonicMs();
    while (this.#expireOne(now));
    if (now - this.#reviewedAtMs >= REVIEW_MS) this.#review(now);
    const listens = this.#outstanding.size > 0 && now - this.#askedAtMs >= NEWS_MS;
    if (this.#touched.size > 0 || this.#alone || listens) this.#ask(listens || this.#alone);
    return this.#asking ?? Promise.resolve();
  }

  /** Gives back what is not reserved. */
  async stop(): Promise<void> {
    this.#stopping = true;
    await this.#asking;
    for (const budget of this.#budgets.values()) this.#touched.add(budget);
    // As many rounds as it takes to say it all, and no more should the store be away.
    const rounds = Math.ceil(this.#budgets.size / MAX_ASKS);
    for (let round = 0; round < rounds && !this.#alone; round++) {
      this.#ask(false);
      await this.#asking;
    }
  }

  get stats() {
    let held = 0;
    let reserved = 0;
    for (const budget of this.#budgets.values()) {
      held += budget.held;
      reserved += budget.reserved;
    }
    return {
      budgets: this.#budgets.size,
      waiting: this.#waiting.length,
      outstanding: this.#outstanding.size,
      held,
      reserved,
      alone: this.#alone,
    };
  }

  #budget({ tenant, period, periodEndsMs }: TokenWish, now: number): Budget {
    const current = this.#current.get(tenant);
    if (current !== undefined && current.period === period) return current;
    const key = keyOf(tenant, period);
    const known = this.#budgets.get(key);
    if (known === undefined && this.#budgets.size >= this.#parts.maxBudgets) throw new Fault('too many token budgets are in use');
    const budget = known ?? new Budget(tenant, period, periodEndsMs, now);
    this.#budgets.set(key, budget);
    this.#current.set(tenant, budget);
    return budget;
  }

  /** Undefined when only the store can say. */
  #try(budget: Budget, amount: number, counter: number, now: number): boolean | undefined {
    const { quota, used, spare, uncertain } = budget;
    const within = used === undefined || quota - used + spare >= amount;
    if (spare >= amount && within && !uncertain && !this.#silentTooLong(now)) {
      this.#reserve(budget, amount, counter, now);
      if (runsLow(budget, now)) this.#touched.add(budget);
      return true;
    }
    if (this.#alone) return this.#tryAlone(budget, amount, counter, now);
    return !within && now < budget.refusesUntilMs ? false : undefined;
  }

  #tryAlone(budget: Budget, amount: number, counter: number, now: number): boolean {
    if (budget.used === undefined) throw new Fault('the store is away and never spoke of this token budget');
    // Spent is spent, whoever else is away.
    if (budget.quota - budget.spent < amount) return false;
    const share = Math.floor(budget.left(budget.quota) / this.#holders);
    const held = this.#silentTooLong(now) ? 0 : budget.held;
    if (budget.reserved + amount - held > share)
      throw new Fault('the store is away and the share of this token budget is used up');
    this.#reserve(budget, amount, counter, now);
    this.#touched.add(budget);
    return true;
  }

  /** The store may have taken away what is held here. */
  #silentTooLong(now: number): boolean {
    return now - this.#heardAtMs >= this.#parts.reservationTtlMs;
  }

  #reserve(budget: Budget, amount: number, counter: number, now: number): void {
    const { counts, maxReservations, reservationTtlMs } = this.#parts;
    if (this.#outstanding.size >= maxReservations) this.#expireOne(Number.POSITIVE_INFINITY);
    budget.reserve(amount);
    counts.tokensReserved += amount;
    this.#outstanding.add(counter, budget, amount, now + reservationTtlMs);
  }

  #wait(budget: Budget, amount: number, counter: number): Promise<boolean> {
    if (this.#waiting.length >= MAX_WAITING) throw new Fault(`${MAX_WAITING} requests wait for their tokens already`);
    return new Promise((resolve, reject) => {
      budget.waiting += 1;
      budget.waitingTokens += amount;
      this.#waiting.push({ budget, amount, counter, resolve, reject, attempts: 0 });
      this.#ask(false);
    });
  }

  #free({ budget, amount }: Ended, spent: number): void {
    budget.release(amount, spent);
    // Where little is left, others may be waiting for it.
    const scarce = this.#stopping || budget.left(budget.quota) < budget.quota * SCARCE_SHARE;
    (scarce ? this.#touched : this.#patient).add(budget);
  }

  #expireOne(nowMs: number): boolean {
    const expired = this.#outstanding.takeExpired(nowMs);
    if (expired === undefined) return false;
    this.#parts.counts.reservationsExpired += 1;
    this.#parts.counts.tokensExpired += expired.amount;
    this.#free(expired, 0);
    return true;
  }

  /** Looks at every budget: what lies unused is given back, and what has not been in use for long is forgotten. */
  #review(now: number): void {
    this.#reviewedAtMs = now;
    for (const budget of this.#patient) this.#touched.add(budget);
    this.#patient.clear();
    for (const budget of this.#budgets.values()) {
      if (budget.spare < 0 || surplusOf(budget, this.#slice(budget, now)) > 0) this.#touched.add(budget);
      const empty =
        budget.held === 0 &&
        budget.changes === budget.confirmed &&
        budget.reserved === 0 &&
        budget.waiting === 0 &&
        !budget.uncertain;
      if (!empty || now - budget.askedAtMs < FORGET_MS) continue;
      this.#touched.delete(budget);
      this.#patient.delete(budget);
      this.#budgets.delete(keyOf(budget.tenant, budget.period));
      if (this.#current.get(budget.tenant) === budget) this.#current.delete(budget.tenant);
    }
  }

  #slice(budget: Budget, now: number): number {
    return this.#stopping ? 0 : sliceOf(budget, this.#holders, now);
  }

  /** @param listen ask although there may be nothing to ask for */
  #ask(listen: boolean): void {
    if (this.#asking !== undefined) return;
    this.#asking = this.#askStore(listen).finally(() => {
      this.#asking = undefined;
      if (this.#waiting.length > 0) this.#ask(false);
    });
  }

  async #askStore(listen: boolean): Promise<void> {
    // Whoever comes in this turn of the loop comes along.
    await Promise.resolve();
    const { store, holder, counts, monotonicMs, onFault } = this.#parts;
    if (this.#silentTooLong(monotonicMs())) this.#doubtAll();
    const batch = this.#collect(monotonicMs());
    if (batch.asks.length === 0 && !listen && this.#waiting.length === 0) return;
    const heard = this.#heard;
    this.#turn += 1;
    this.#askedAtMs = monotonicMs();
    counts.statements += 1;
    try {
      const answer = await store.hold({ holder, turn: this.#turn, asks: batch.asks, heard });
      // A hold is known to be there since the question was sent, not since its answer came.
      this.#heardAtMs = this.#askedAtMs;
      this.#alone = false;
      this.#learn(batch, answer);
    } catch (error) {
      if (!this.#alone) {
        counts.faults += 1;
        onFault?.(error);
      }
      this.#alone = true;
      for (const budget of batch.budgets) {
        budget.uncertain = true;
        this.#touched.add(budget);
      }
    }
    this.#serveWaiting();
  }

  #doubtAll(): void {
    for (const budget of this.#budgets.values()) {
      budget.uncertain = true;
      this.#touched.add(budget);
    }
  }

  #collect(now: number): Batch {
    const asks: TokenAsk[] = [];
    const budgets: Budget[] = [];
    const asked = new Set<Budget>();
    for (const { budget } of this.#waiting) asked.add(budget);
    for (const budget of this.#touched) asked.add(budget);
    for (const budget of this.#patient) asked.add(budget);
    this.#touched.clear();
    this.#patient.clear();
    for (const budget of asked) {
      if (asks.length >= MAX_ASKS) {
        this.#touched.add(budget);
        continue;
      }
      const ask = this.#askFor(budget, now);
      if (ask === undefined) continue;
      asks.push(ask);
      budgets.push(budget);
    }
    return { asks, budgets };
  }

  #askFor(budget: Budget, now: number): TokenAsk | undefined {
    const { tenant, period, quota } = budget;
    let want = 0;
    if (!budget.uncertain) {
      const slice = this.#slice(budget, now);
      // What was reserved without a hold, or what is too much. Nobody may reserve from what is on its way back.
      budget.change(budget.spare < 0 ? -budget.spare : -surplusOf(budget, slice));
      // Once more is needed, a whole slice is asked for; until then nothing.
      const needs = budget.waiting > 0 || (!this.#stopping && runsLow(budget, now));
      want = needs ? Math.max(0, budget.waitingTokens + slice - budget.spare) : 0;
    }
    const { changes, confirmed } = budget;
    // Who waits is told the truth, also where enough is held and the quota was lowered meanwhile.
    if (!budget.uncertain && budget.waiting === 0 && changes === confirmed && want === 0) return undefined;
    return { tenant, period, quota, want, changes, confirmed };
  }

  #learn({ asks, budgets }: Batch, { grants, news, holders }: TokenAnswer): void {
    const now = this.#parts.monotonicMs();
    this.#holders = Math.max(1, holders);
    for (const [i, ask] of asks.entries()) {
      const budget = budgets[i];
      const grant = grants[i];
      if (budget === undefined || grant === undefined) continue;
      // What changed since the question was sent is yet to be told.
      budget.held = grant.held + budget.changes - ask.changes;
      budget.confirmed = ask.changes;
      budget.used = grant.used;
      budget.spent = grant.spent;
      this.#parts.counts.tokensLeased += grant.granted;
      if (grant.granted < ask.want || grant.used >= budget.quota) {
        budget.refusesUntilMs = now + (grant.spent >= budget.quota ? SPENT_REFUSES_MS : REFUSES_MS);
      }
      if (budget.uncertain) this.#touched.add(budget);
      budget.uncertain = false;
    }
    this.#heard = news.map(({ id }) => id);
    for (const { counters, totals } of news) for (const [i, counter] of counters.entries()) this.settled(counter, totals[i] ?? 0);
  }

  #serveWaiting(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    const now = this.#parts.monotonicMs();
    for (const waiter of waiting) {
      const { budget, amount, counter } = waiter;
      try {
        const reserved = this.#try(budget, amount, counter, now);
        waiter.attempts += 1;
        if (reserved === undefined && waiter.attempts < MAX_ATTEMPTS) {
          this.#waiting.push(waiter);
          continue;
        }
        leave(waiter);
        if (reserved === undefined) waiter.reject(new Fault('the store did not say whether tokens are left'));
        else waiter.resolve(reserved);
      } catch (error) {
        leave(waiter);
        waiter.reject(error);
      }
    }
  }
}

function keyOf(tenant: string, period: string): string {
  return `${tenant} ${period}`;
}

function leave({ budget, amount }: Waiter): void {
  budget.waiting -= 1;
  budget.waitingTokens -= amount;
}
