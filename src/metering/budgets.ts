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
 * it holds. What is not needed is given back. A reservation that nobody settles or renews expires, and the store takes away what a lost
 * process held.
 *
 * While the store is away each process goes on with what it holds. More than that is a fault: nobody can say what others spent.
 */

import { Fault } from '../domain/errors.ts';
import type { Budget } from './budget.ts';
import { BudgetShelf, type PeriodOfTenant } from './budget-shelf.ts';
import type { MeteringCounts } from './counts.ts';
import { NearestQuotas, type QuotaShare } from './nearest-quotas.ts';
import { Outstanding } from './outstanding.ts';
import type { TokenAnswer, TokenAsk, TokenStore } from './ports.ts';
import type { Ended } from './reservations.ts';
import { runsLow, runsShort, sliceOf, surplusOf } from './slices.ts';
import { askFor, learn, type TokenBatch } from './token-batch.ts';
import { TokenWaiters } from './token-waiters.ts';

export interface BudgetsParts {
  readonly store: TokenStore;
  readonly holder: string;
  /** A reservation lives so long without being settled or renewed. */
  readonly reservationTtlMs: number;
  /** The store takes away the holds of a process that it did not hear of for so long. */
  readonly holdTtlMs: number;
  readonly monotonicMs: () => number;
  /** The store's time, milliseconds since the epoch. */
  readonly nowMs: () => number;
  readonly maxBudgets: number;
  readonly maxReservations: number;
  readonly counts: MeteringCounts;
  /** Called with a request of this process that another process heard to be running, and when the store heard of it. */
  readonly onRenewed?: (counter: number, heardAtMs: number) => void;
  /** Reports whether such news matter although no tokens are reserved. Default: never. */
  readonly awaitsNews?: () => boolean;
  /** Told once each time the store goes away. */
  readonly onFault?: (error: unknown) => void;
}

export interface TokenWish extends PeriodOfTenant {
  readonly quota: number;
  readonly amount: number;
  /** The reservation's number in this process. */
  readonly counter: number;
}

/** How often to ask whether others settled reservations of this process, when nothing else is asked. */
const NEWS_MS = 1000;
const REVIEW_MS = 1000;
const FORGET_MS = 60_000;
/** After an outage of the store: other processes pass on the renewals that they kept meanwhile. */
const RETURN_GRACE_MS = 5000;
/** Of a quota: below it every token is given back at once. */
const SCARCE_SHARE = 0.1;
const MAX_ASKS = 1000;
/** Budgets looked at for one statement, and in one tick for what they could give back. */
const MAX_LOOKED = 5 * MAX_ASKS;
export const MAX_REVIEWED = 2000;

export class Budgets {
  readonly #parts: BudgetsParts;
  readonly #budgets: BudgetShelf;
  readonly #outstanding: Outstanding;
  /** Budgets that may have something to say to the store. */
  readonly #touched = new Set<Budget>();
  /** The same, but it may wait for the next review, or for the next statement. */
  readonly #patient = new Set<Budget>();
  #patientIsDue = false;
  /** The rest of the review that is under way. */
  #reviewing: Iterator<Budget> | undefined;
  #reviewed = 0;
  readonly #nearest = new NearestQuotas();
  readonly #waiters = new TokenWaiters();
  #heard: number[] = [];
  #asking: Promise<void> | undefined;
  #alone = false;
  /** The store was silent for so long that it may have taken all holds away; cleared by its next answer. */
  #doubted = false;
  #stopping = false;
  #holders = 1;
  #turn = 0;
  /** When the last statement left that was answered. */
  #heardAtMs: number;
  /** When the store answered again after an outage. */
  #returnedAtMs = Number.NEGATIVE_INFINITY;
  #askedAtMs: number;
  #reviewedAtMs: number;

  constructor(parts: BudgetsParts) {
    this.#parts = parts;
    this.#budgets = new BudgetShelf(parts.maxBudgets);
    this.#outstanding = new Outstanding({ ...parts, onEnded: (ended, spent) => this.#free(ended, spent) });
    const now = parts.monotonicMs();
    this.#heardAtMs = now;
    this.#askedAtMs = now;
    this.#reviewedAtMs = now;
  }

  /** True: reserved; false: there is too little left. A promise when only the store can say. Throws and rejects with a Fault. */
  reserve(wish: TokenWish, now = this.#parts.monotonicMs()): boolean | Promise<boolean> {
    const { amount, counter, quota } = wish;
    if (amount > quota) return false;
    const budget = this.#budgets.find(wish, now);
    budget.quota = quota;
    budget.typical = amount;
    budget.askedAtMs = now;
    budget.demand.note(amount);
    // Whoever waits already is first.
    const known = budget.waiting > 0 ? undefined : this.#try(budget, amount, counter, now);
    return known ?? this.#wait(budget, amount, counter);
  }

  /** Returns what a request of this process could reserve, as the store said last; undefined if it has not said it yet. */
  left(wish: TokenWish, now = this.#parts.monotonicMs()): number | undefined {
    const { used, spare } = this.#budgets.find(wish, now);
    return used === undefined ? undefined : Math.max(0, wish.quota - used + Math.max(0, spare));
  }

  /** A request of this process is over, and what it spent is booked. */
  settled(counter: number, spent: number): void {
    this.#outstanding.settled(counter, spent);
  }

  /** A request of this process is still running, as this process hears. */
  renew(counter: number): void {
    this.#outstanding.renew(counter, this.#parts.monotonicMs());
  }

  /** A check of this process was cancelled: its tokens can be reserved again at once. */
  release(counter: number): void {
    this.#outstanding.release(counter);
  }

  /** Asks for what will be needed and gives back what is not; every 100 ms or so. Resolves when the store has answered. */
  tick(): Promise<void> {
    const now = this.#parts.monotonicMs();
    // A reservation expires when an answer of the store that was asked for after its time did not renew it.
    if (now - this.#returnedAtMs >= RETURN_GRACE_MS) this.#outstanding.expire(this.#heardAtMs);
    this.#review(now);
    const awaitsNews = this.#outstanding.size > 0 || this.#parts.awaitsNews?.() === true;
    const listens = awaitsNews && now - this.#askedAtMs >= NEWS_MS;
    const speaks = this.#touched.size > 0 || (this.#patientIsDue && this.#patient.size > 0);
    if (speaks || this.#alone || listens) this.#ask(listens || this.#alone);
    return this.#asking ?? Promise.resolve();
  }

  /** The moment of the last question that the store answered: every renewal before it is known here. */
  get heardAtMs(): number {
    return this.#heardAtMs;
  }

  /** Another server of the database answers, which may not know what this process holds: it is to be heard again before it is used. */
  storeReplaced(): void {
    this.#doubtAll();
  }

  /** Gives back what is not reserved. */
  async stop(): Promise<void> {
    this.#stopping = true;
    await this.#asking;
    for (const budget of this.#budgets.all()) this.#touched.add(budget);
    // As many rounds as it takes to say it all, and no more should the store be away.
    const rounds = Math.ceil(this.#budgets.size / MAX_ASKS);
    for (let round = 0; round < rounds && !this.#alone; round++) {
      this.#ask(false);
      await this.#asking;
    }
  }

  get stats() {
    return {
      ...this.#budgets.sums,
      waiting: this.#waiters.size,
      outstanding: this.#outstanding.size,
      /** How often a budget was reviewed since the process began. */
      reviewed: this.#reviewed,
      alone: this.#alone,
    };
  }

  /** Returns the shares of the budgets with the least left, at the last complete review. Periods that are over are left out. */
  get quotas(): readonly QuotaShare[] {
    const nowMs = this.#parts.nowMs();
    return this.#nearest.shares.filter(({ endsMs }) => nowMs < endsMs);
  }

  /** Undefined when only the store can say. */
  #try(budget: Budget, amount: number, counter: number, now: number): boolean | undefined {
    const { quota, used, spare, uncertain } = budget;
    const within = used === undefined || quota - used + spare >= amount;
    if (spare >= amount && within && !uncertain && !this.#silentTooLong(now)) {
      this.#reserve(budget, amount, counter, now);
      if (runsShort(budget, now)) (runsLow(budget, now) ? this.#touched : this.#patient).add(budget);
      return true;
    }
    if (this.#alone) return this.#tryAlone(budget, amount, counter, now);
    return !within && now < budget.refusesUntilMs ? false : undefined;
  }

  #tryAlone(budget: Budget, amount: number, counter: number, now: number): boolean {
    const { quota, used, spare } = budget;
    // Spent is spent, whoever else is away.
    if (used !== undefined && quota - budget.spent < amount) return false;
    const within = used !== undefined && quota - used + spare >= amount;
    if (spare < amount || !within || this.#silentTooLong(now))
      throw new Fault('the database is unreachable and the tokens that this process holds are used up');
    this.#reserve(budget, amount, counter, now);
    return true;
  }

  /** The store may have taken away what is held here. */
  #silentTooLong(now: number): boolean {
    return now - this.#heardAtMs >= this.#parts.holdTtlMs;
  }

  #reserve(budget: Budget, amount: number, counter: number, now: number): void {
    budget.reserve(amount);
    this.#outstanding.add(counter, budget, amount, now);
  }

  #wait(budget: Budget, amount: number, counter: number): Promise<boolean> {
    const answer = this.#waiters.add(budget, amount, counter);
    this.#ask(false);
    return answer;
  }

  #free({ budget, amount }: Ended, spent: number): void {
    budget.release(amount, spent);
    // Where little is left, others may be waiting for it.
    const scarce = this.#stopping || budget.left(budget.quota) < budget.quota * SCARCE_SHARE;
    (scarce ? this.#touched : this.#patient).add(budget);
  }

  /** Looks at every budget, some in each tick: gives back what lies unused, and forgets what has not been in use for long. */
  #review(now: number): void {
    if (this.#reviewing === undefined) {
      if (now - this.#reviewedAtMs < REVIEW_MS) return;
      this.#reviewedAtMs = now;
      this.#patientIsDue = true;
      this.#reviewing = this.#budgets.all();
    }
    const nowMs = this.#parts.nowMs();
    for (let i = 0; i < MAX_REVIEWED; i++) {
      const next = this.#reviewing.next();
      if (next.done === true) {
        this.#reviewing = undefined;
        this.#nearest.publish();
        return;
      }
      this.#reviewOne(next.value, now, nowMs);
    }
  }

  /** @param nowMs the store's time */
  #reviewOne(budget: Budget, now: number, nowMs: number): void {
    this.#reviewed += 1;
    const { tenant, quota, used, endsMs } = budget;
    if (used !== undefined && quota > 0 && nowMs < endsMs) this.#nearest.offer({ tenant, ratio: used / quota, endsMs });
    if (budget.spare < 0 || surplusOf(budget, this.#slice(budget, now)) > 0) this.#touched.add(budget);
    if (!budget.isIdle || now - budget.askedAtMs < FORGET_MS) return;
    this.#touched.delete(budget);
    this.#patient.delete(budget);
    this.#budgets.forget(budget);
  }

  #slice(budget: Budget, now: number): number {
    return this.#stopping ? 0 : sliceOf(budget, this.#holders, now);
  }

  /** @param listen ask although there may be nothing to ask for */
  #ask(listen: boolean): void {
    if (this.#asking !== undefined) return;
    this.#asking = this.#askStore(listen).finally(() => {
      this.#asking = undefined;
      if (this.#waiters.size > 0) this.#ask(false);
    });
  }

  async #askStore(listen: boolean): Promise<void> {
    // Whoever comes in this turn of the loop comes along.
    await Promise.resolve();
    const { store, holder, counts, monotonicMs, onFault } = this.#parts;
    if (this.#silentTooLong(monotonicMs())) this.#doubtAll();
    const batch = this.#collect(monotonicMs());
    if (batch.asks.length === 0 && !listen && this.#waiters.size === 0) return;
    const heard = this.#heard;
    this.#turn += 1;
    this.#askedAtMs = monotonicMs();
    counts.statements += 1;
    try {
      const answer = await store.hold({ holder, turn: this.#turn, asks: batch.asks, heard });
      // A hold is known to be there since the question was sent, not since its answer came.
      this.#heardAtMs = this.#askedAtMs;
      if (this.#alone) this.#returnedAtMs = monotonicMs();
      this.#alone = false;
      this.#doubted = false;
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
    const now = monotonicMs();
    this.#waiters.serve((budget, amount, counter) => this.#try(budget, amount, counter, now));
  }

  #doubtAll(): void {
    if (this.#doubted) return;
    this.#doubted = true;
    for (const budget of this.#budgets.all()) {
      budget.uncertain = true;
      this.#touched.add(budget);
    }
  }

  #collect(now: number): TokenBatch {
    const asks: TokenAsk[] = [];
    const budgets: Budget[] = [];
    for (const budget of this.#candidates()) {
      const ask = askFor(budget, this.#slice(budget, now), !this.#stopping, now);
      if (ask === undefined) continue;
      asks.push(ask);
      budgets.push(budget);
      if (asks.length >= MAX_ASKS) break;
    }
    if (this.#patient.size === 0) this.#patientIsDue = false;
    // Where it is to be heard first what is held here, nothing is wished for yet.
    this.#waiters.ask(new Set(budgets.filter(({ uncertain }) => !uncertain)));
    return { asks, budgets };
  }

  /** Takes budgets that may have something to say, each once, those that checks wait for first. The others keep their places. */
  *#candidates(): Generator<Budget, void> {
    const waited = this.#waiters.budgets();
    yield* waited;
    let looked = 0;
    for (const budgets of [this.#touched, this.#patient]) {
      for (const budget of budgets) {
        this.#touched.delete(budget);
        this.#patient.delete(budget);
        if (!waited.has(budget)) yield budget;
        looked += 1;
        if (looked >= MAX_LOOKED) return;
      }
    }
  }

  #learn({ asks, budgets }: TokenBatch, { grants, news, renewals, holders }: TokenAnswer): void {
    const now = this.#parts.monotonicMs();
    this.#holders = Math.max(1, holders);
    for (const [i, ask] of asks.entries()) {
      const budget = budgets[i];
      const grant = grants[i];
      if (budget === undefined || grant === undefined) continue;
      this.#parts.counts.tokensLeased += grant.granted;
      if (budget.uncertain) this.#touched.add(budget);
      learn(budget, ask, grant, now);
    }
    for (const { counters, ageMs } of renewals) {
      for (const counter of counters) {
        this.#outstanding.renew(counter, now - ageMs);
        this.#parts.onRenewed?.(counter, now - ageMs);
      }
    }
    this.#heard = news.map(({ id }) => id);
    for (const { counters, totals } of news)
      for (const [i, counter] of counters.entries()) this.settled(counter, totals[i] ?? 0);
  }
}
