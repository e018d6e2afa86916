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
import { BudgetRegistry, type PeriodOfTenant } from './budget-registry.ts';
import type { MeteringCounts } from './counts.ts';
import { NearestQuotas, type QuotaShare } from './nearest-quotas.ts';
import { Outstanding } from './outstanding.ts';
import type { HoldRequest, HoldResult, TokenStore } from './ports.ts';
import type { EndedReservation } from './reservations.ts';
import { isCritical, needsRefill, sliceOf, surplusOf } from './slices.ts';
import { type HoldStatement, holdRequestFor, learn } from './token-batch.ts';
import { TokenWaiters } from './token-waiters.ts';

export interface BudgetsParts {
  readonly store: TokenStore;
  readonly processId: string;
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
  readonly awaitsSettlements?: () => boolean;
  /** Told once each time the store goes away. */
  readonly onFault?: (error: unknown) => void;
}

export interface TokenReservationRequest extends PeriodOfTenant {
  readonly quota: number;
  readonly amount: number;
  /** The reservation's number in this process. */
  readonly counter: number;
}

/** How often to ask whether others settled reservations of this process, when nothing else is asked. */
const POLL_MS = 1000;
const REVIEW_MS = 1000;
const FORGET_MS = 60_000;
/** After an outage of the store: other processes pass on the renewals that they kept meanwhile. */
const RETURN_GRACE_MS = 5000;
/** Of a quota: below it every token is given back at once. */
const SCARCE_SHARE = 0.1;
const MAX_REQUESTS = 1000;
/** Budgets looked at for one statement, and in one tick for what they could give back. */
const MAX_LOOKED = 5 * MAX_REQUESTS;
export const MAX_REVIEWED = 2000;

export class Budgets {
  readonly #parts: BudgetsParts;
  readonly #budgets: BudgetRegistry;
  readonly #outstanding: Outstanding;
  /** Budgets that may have something to say to the store. */
  readonly #dirty = new Set<Budget>();
  /** The same, but it may wait for the next review, or for the next statement. */
  readonly #deferred = new Set<Budget>();
  #deferredIsDue = false;
  /** The rest of the review that is under way. */
  #reviewing: Iterator<Budget> | undefined;
  #reviewed = 0;
  readonly #nearest = new NearestQuotas();
  readonly #waiters = new TokenWaiters();
  #acked: number[] = [];
  #running: Promise<void> | undefined;
  #isOffline = false;
  /** The store was silent for so long that it may have taken all holds away; cleared by its next answer. */
  #doubted = false;
  #stopping = false;
  #processes = 1;
  #sequence = 0;
  /** When the last statement left that was answered. */
  #heardAtMs: number;
  /** When the store answered again after an outage. */
  #returnedAtMs = Number.NEGATIVE_INFINITY;
  #requestedAtMs: number;
  #reviewedAtMs: number;

  constructor(parts: BudgetsParts) {
    this.#parts = parts;
    this.#budgets = new BudgetRegistry(parts.maxBudgets);
    this.#outstanding = new Outstanding({ ...parts, onEnded: (ended, spent) => this.#free(ended, spent) });
    const now = parts.monotonicMs();
    this.#heardAtMs = now;
    this.#requestedAtMs = now;
    this.#reviewedAtMs = now;
  }

  /** True: reserved; false: there is too little left. A promise when only the store can say. Throws and rejects with a Fault. */
  reserve(reservation: TokenReservationRequest, now = this.#parts.monotonicMs()): boolean | Promise<boolean> {
    const { amount, counter, quota } = reservation;
    if (amount > quota) return false;
    const budget = this.#budgets.find(reservation, now);
    budget.quota = quota;
    budget.lastReservation = amount;
    budget.requestedAtMs = now;
    budget.demand.note(amount);
    // Whoever waits already is first.
    const known = budget.waiting > 0 ? undefined : this.#try(budget, amount, counter, now);
    return known ?? this.#wait(budget, amount, counter);
  }

  /** Returns what a request of this process could reserve, as the store said last; undefined if it has not said it yet. */
  left(reservation: TokenReservationRequest, now = this.#parts.monotonicMs()): number | undefined {
    const { used, spare } = this.#budgets.find(reservation, now);
    return used === undefined ? undefined : Math.max(0, reservation.quota - used + Math.max(0, spare));
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
    const awaitsSettlements = this.#outstanding.size > 0 || this.#parts.awaitsSettlements?.() === true;
    const listens = awaitsSettlements && now - this.#requestedAtMs >= POLL_MS;
    const speaks = this.#dirty.size > 0 || (this.#deferredIsDue && this.#deferred.size > 0);
    if (speaks || this.#isOffline || listens) this.#request(listens || this.#isOffline);
    return this.#running ?? Promise.resolve();
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
    await this.#running;
    for (const budget of this.#budgets.all()) this.#dirty.add(budget);
    // As many rounds as it takes to say it all, and no more should the store be away.
    const rounds = Math.ceil(this.#budgets.size / MAX_REQUESTS);
    for (let round = 0; round < rounds && !this.#isOffline; round++) {
      this.#request(false);
      await this.#running;
    }
  }

  get stats() {
    return {
      ...this.#budgets.sums,
      waiting: this.#waiters.size,
      outstanding: this.#outstanding.size,
      /** How often a budget was reviewed since the process began. */
      reviewed: this.#reviewed,
      isOffline: this.#isOffline,
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
      if (needsRefill(budget, now)) (isCritical(budget, now) ? this.#dirty : this.#deferred).add(budget);
      return true;
    }
    if (this.#isOffline) return this.#tryOffline(budget, amount, counter, now);
    return !within && now < budget.refusesUntilMs ? false : undefined;
  }

  #tryOffline(budget: Budget, amount: number, counter: number, now: number): boolean {
    const { quota, used, spare } = budget;
    // Tokens that are spent stay spent.
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
    this.#request(false);
    return answer;
  }

  #free({ budget, amount }: EndedReservation, spent: number): void {
    budget.release(amount, spent);
    // Where little is left, others may be waiting for it.
    const scarce = this.#stopping || budget.left(budget.quota) < budget.quota * SCARCE_SHARE;
    (scarce ? this.#dirty : this.#deferred).add(budget);
  }

  /** Looks at every budget, some in each tick: gives back what lies unused, and forgets what has not been in use for long. */
  #review(now: number): void {
    if (this.#reviewing === undefined) {
      if (now - this.#reviewedAtMs < REVIEW_MS) return;
      this.#reviewedAtMs = now;
      this.#deferredIsDue = true;
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
    if (budget.spare < 0 || surplusOf(budget, this.#slice(budget, now)) > 0) this.#dirty.add(budget);
    if (!budget.isIdle || now - budget.requestedAtMs < FORGET_MS) return;
    this.#dirty.delete(budget);
    this.#deferred.delete(budget);
    this.#budgets.forget(budget);
  }

  #slice(budget: Budget, now: number): number {
    return this.#stopping ? 0 : sliceOf(budget, this.#processes, now);
  }

  /** @param listen ask although there may be nothing to ask for */
  #request(listen: boolean): void {
    if (this.#running !== undefined) return;
    this.#running = this.#requestFromStore(listen).finally(() => {
      this.#running = undefined;
      if (this.#waiters.size > 0) this.#request(false);
    });
  }

  async #requestFromStore(listen: boolean): Promise<void> {
    // Whoever comes in this turn of the loop comes along.
    await Promise.resolve();
    const { store, processId, counts, monotonicMs, onFault } = this.#parts;
    if (this.#silentTooLong(monotonicMs())) this.#doubtAll();
    const batch = this.#collect(monotonicMs());
    if (batch.requests.length === 0 && !listen && this.#waiters.size === 0) return;
    const acked = this.#acked;
    this.#sequence += 1;
    this.#requestedAtMs = monotonicMs();
    counts.statements += 1;
    try {
      const answer = await store.hold({ processId, sequence: this.#sequence, requests: batch.requests, acked });
      // A hold is known to be there since the question was sent, not since its answer came.
      this.#heardAtMs = this.#requestedAtMs;
      if (this.#isOffline) this.#returnedAtMs = monotonicMs();
      this.#isOffline = false;
      this.#doubted = false;
      this.#learn(batch, answer);
    } catch (error) {
      if (!this.#isOffline) {
        counts.faults += 1;
        onFault?.(error);
      }
      this.#isOffline = true;
      for (const budget of batch.budgets) {
        budget.uncertain = true;
        this.#dirty.add(budget);
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
      this.#dirty.add(budget);
    }
  }

  #collect(now: number): HoldStatement {
    const requests: HoldRequest[] = [];
    const budgets: Budget[] = [];
    for (const budget of this.#candidates()) {
      const request = holdRequestFor(budget, this.#slice(budget, now), !this.#stopping, now);
      if (request === undefined) continue;
      requests.push(request);
      budgets.push(budget);
      if (requests.length >= MAX_REQUESTS) break;
    }
    if (this.#deferred.size === 0) this.#deferredIsDue = false;
    // Where it is to be heard first what is held here, nothing is wished for yet.
    this.#waiters.request(new Set(budgets.filter(({ uncertain }) => !uncertain)));
    return { requests, budgets };
  }

  /** Takes budgets that may have something to say, each once, those that checks wait for first. The others keep their places. */
  *#candidates(): Generator<Budget, void> {
    const waited = this.#waiters.budgets();
    yield* waited;
    let looked = 0;
    for (const budgets of [this.#dirty, this.#deferred]) {
      for (const budget of budgets) {
        this.#dirty.delete(budget);
        this.#deferred.delete(budget);
        if (!waited.has(budget)) yield budget;
        looked += 1;
        if (looked >= MAX_LOOKED) return;
      }
    }
  }

  #learn({ requests, budgets }: HoldStatement, { grants, settlements, renewals, processes }: HoldResult): void {
    const now = this.#parts.monotonicMs();
    this.#processes = Math.max(1, processes);
    for (const [i, request] of requests.entries()) {
      const budget = budgets[i];
      const grant = grants[i];
      if (budget === undefined || grant === undefined) continue;
      this.#parts.counts.tokensLeased += grant.granted;
      if (budget.uncertain) this.#dirty.add(budget);
      learn(budget, request, grant, now);
    }
    for (const { counters, ageMs } of renewals) {
      for (const counter of counters) {
        this.#outstanding.renew(counter, now - ageMs);
        this.#parts.onRenewed?.(counter, now - ageMs);
      }
    }
    this.#acked = settlements.map(({ id }) => id);
    for (const { counters, totals } of settlements)
      for (const [i, counter] of counters.entries()) this.settled(counter, totals[i] ?? 0);
  }
}
