/**
 * Budgets, over all processes: the monthly tokens of tenants, the budgets of the API, and the places of parallel
 * requests. The store grants each process a hold on a budget ahead of need, so that a check reserves from memory the
 * amounts that its request may spend. After the request, the process that received the report of its end books the
 * actual usage, and the rest of the reservation becomes available again in the process that made it. A request reserves
 * in all of its budgets or in none.
 *
 * - If enough is available in each budget, the process reserves at once.
 * - If the store recently reported that too little of one is left, the process rejects the check at once.
 * - Otherwise the check waits for one statement, which carries the requests of all waiting checks.
 *
 * Invariants: at every grant, the spent and held amounts of all processes together are at most the limit. No process
 * reserves more than it holds. A process returns what it does not need. A reservation that is neither settled nor
 * renewed expires, and the store takes the holds of a lost process.
 *
 * While the store is unreachable, each process continues with the amounts that it holds. A check that needs more is a
 * fault, because the process does not know what others spent. Places belong to rate limits, so each process continues
 * with the larger of its hold and its fair share of them: the limit divided by the number of processes last seen. So
 * does a check for a place that cannot wait longer for the store's answer.
 */

import { SingleFlight } from '../concurrency/single-flight.ts';
import { Fault } from '../domain/errors.ts';
import { type Account, type Amounts, amountIn } from './account.ts';
import type { BudgetKey, PeriodBudget } from './budget.ts';
import { BudgetRegistry } from './budget-registry.ts';
import { BudgetWaiters, releaseHolds } from './budget-waiters.ts';
import type { Hold } from './hold.ts';
import { applyHoldGrant, type HoldRequests, holdRequestFor } from './hold-requests.ts';
import { NearestQuotas, type QuotaShare } from './nearest-quotas.ts';
import { Outstanding } from './outstanding.ts';
import { Outage, type SharedParts } from './parts.ts';
import type { HoldRequest, HoldResult, TokenStore } from './ports.ts';
import { budgetSliceOf, isCritical, needsRefill, surplusOf } from './slices.ts';

interface BudgetsParts extends SharedParts {
  readonly store: TokenStore;
  /** The lifetime of a reservation that is neither settled nor renewed. */
  readonly reservationTtlMs: number;
  /** The store takes the holds of a process that it has not seen for this time. */
  readonly holdTtlMs: number;
  /** The store's time, milliseconds since the epoch. */
  readonly nowMs: () => number;
  readonly maxBudgets: number;
  readonly maxReservations: number;
  /** Called with a request of this process that another process reported as running, and the time of that report. */
  readonly onRenewed?: (counter: number, seenAtMs: number) => void;
  /**
   * Reports whether settlements and renewals by other processes matter even if nothing is reserved. Default: never.
   */
  readonly awaitsSettlements?: () => boolean;
}

export interface ReservationRequest extends Amounts {
  readonly holds: readonly Hold[];
  /** The budgets of `holds`, and the other accounts that the request's end corrects. */
  readonly accounts: readonly Account[];
  /** The reservation's number in this process. */
  readonly counter: number;
  /** The monotonic time after which the check no longer waits for the store. Default: it waits for the answer. */
  readonly decideByMs?: number | undefined;
}

/** The interval at which the process fetches settlements of its reservations if it has no other statement to send. */
const POLL_MS = 1000;
const REVIEW_MS = 1000;
const FORGET_MS = 60_000;
/** The time after an outage in which other processes pass on the renewals that they kept during it. */
const RETURN_GRACE_MS = 5000;
/** If less than this share of a limit is left, the process returns released amounts at once. */
const SCARCE_SHARE = 0.1;
const MAX_REQUESTS = 1000;
/** The largest number of budgets that are examined for one statement. */
const MAX_EXAMINED = 5 * MAX_REQUESTS;
export const MAX_REVIEWED = 2000;
const NOTHING: Amounts = { tokens: 0, money: 0 };

export class Budgets {
  readonly #parts: BudgetsParts;
  readonly #budgets: BudgetRegistry;
  readonly #outstanding: Outstanding;
  readonly #outage: Outage;
  readonly #statements = new SingleFlight(
    () => this.#sendStatement(),
    () => this.#waiters.size > 0,
  );
  /** Budgets with unsent changes. */
  readonly #dirty = new Set<PeriodBudget>();
  /** Budgets with unsent changes that may wait for the next review or the next statement. */
  readonly #deferred = new Set<PeriodBudget>();
  #deferredIsDue = false;
  /** The rest of the current review. */
  #reviewing: Iterator<PeriodBudget> | undefined;
  #reviewed = 0;
  readonly #nearest = new NearestQuotas();
  readonly #waiters = new BudgetWaiters();
  /** Ids of received settlements that the next statement acknowledges. */
  #acked: number[] = [];
  /** Whether a statement is to be sent even if it has no requests. */
  #polls = false;
  /** Whether the store may have taken all holds because it was silent for `holdTtlMs`. Its next answer clears this. */
  #doubted = false;
  #stopping = false;
  #processes = 1;
  #sequence = 0;
  /** The time at which the last answered statement was sent. */
  #answeredRequestMs: number;
  /** The time at which the last outage ended. */
  #returnedAtMs = Number.NEGATIVE_INFINITY;
  #requestedAtMs: number;
  #reviewedAtMs: number;

  constructor(parts: BudgetsParts) {
    this.#parts = parts;
    this.#budgets = new BudgetRegistry(parts.maxBudgets, (budget) => this.#released(budget));
    this.#outstanding = new Outstanding(parts);
    this.#outage = new Outage(parts);
    const now = parts.monotonicMs();
    this.#answeredRequestMs = now;
    this.#requestedAtMs = now;
    this.#reviewedAtMs = now;
  }

  /** Finds the budget, or begins to use it. Throws a Fault if too many are in use. */
  find(key: BudgetKey, now = this.#parts.monotonicMs()): PeriodBudget {
    return this.#budgets.find(key, now);
  }

  /**
   * Reserves the amounts of a request in all of its budgets, or in none.
   * @returns undefined if reserved, otherwise the first hold for which too little is left; a promise if the check must
   *   wait for the store. Throws and rejects with a Fault.
   */
  reserve(request: ReservationRequest, now = this.#parts.monotonicMs()): Hold | undefined | Promise<Hold | undefined> {
    const { holds } = request;
    for (const hold of holds)
      if (amountIn(hold.budget.unit, request) > hold.limit) return this.#refuseBeyond(hold, request, now);
    let hasRoom = !this.#isSilentTooLong(now);
    for (const { budget, limit } of holds) {
      const amount = amountIn(budget.unit, request);
      budget.request(amount, limit, now);
      // Waiting checks come first.
      hasRoom &&= budget.waiting === 0 && !budget.uncertain && budget.available >= amount && budget.isWithin(amount);
    }
    if (!hasRoom) return this.#reserveLater(request, now);
    for (const { budget } of holds) this.#take(budget, amountIn(budget.unit, request), now);
    this.#reserved(request, now);
    return undefined;
  }

  /**
   * Returns the hold without room, or before it one of places without room: a rate limit refuses before a quota, also if
   * the store must report first whether a place is free.
   */
  #afterPlaces(lacking: Hold, request: ReservationRequest, now: number): Hold | Promise<Hold> {
    const holds = request.holds.filter(({ cause }) => cause.kind === 'parallel');
    if (holds.length === 0 || holds.includes(lacking)) return lacking;
    const decide = (full: Hold | undefined): Hold => {
      if (full === undefined) this.settled(request.counter, NOTHING);
      return full ?? lacking;
    };
    const { counter, decideByMs } = request;
    const accounts = holds.map(({ budget }) => budget);
    const outcome = this.reserve({ ...NOTHING, counter, decideByMs, holds, accounts }, now);
    return outcome instanceof Promise ? outcome.then(decide) : decide(outcome);
  }

  /** Refuses a request that needs more than the whole limit. The store reports amounts that the refusal shows. */
  #refuseBeyond(lacking: Hold, request: ReservationRequest, now: number): Hold | Promise<Hold> {
    const refused = this.#afterPlaces(lacking, request, now);
    return refused instanceof Promise
      ? refused.then((hold) => this.#withAmounts(hold, request, this.#parts.monotonicMs()))
      : this.#withAmounts(refused, request, now);
  }

  /** Waits for the amounts of a budget that no request was counted in yet. Without the store, they stay unknown. */
  #withAmounts(hold: Hold, { counter, decideByMs }: ReservationRequest, now: number): Hold | Promise<Hold> {
    const { budget, limit, cause } = hold;
    if (cause.kind !== 'budget' || budget.used !== undefined || this.#outage.lasts) return hold;
    budget.request(0, limit, now);
    const request = { ...NOTHING, counter, decideByMs, holds: [hold], accounts: [budget] };
    const answer = this.#waiters.add(request, [], [hold]);
    void this.#statements.run();
    const decide = (): Hold => {
      this.settled(counter, NOTHING);
      return hold;
    };
    return answer.then(decide, decide);
  }

  /** Reserves what is available, and waits for the store if that is not all. */
  #reserveLater(request: ReservationRequest, now: number): Hold | undefined | Promise<Hold | undefined> {
    const taken: Hold[] = [];
    const missing: Hold[] = [];
    try {
      for (const hold of request.holds) {
        const { budget } = hold;
        const known = budget.waiting > 0 ? undefined : this.#try(budget, amountIn(budget.unit, request), now);
        if (known === false) {
          releaseHolds(taken, request);
          return this.#afterPlaces(hold, request, now);
        }
        (known === undefined ? missing : taken).push(hold);
      }
      if (missing.length > 0) {
        const answer = this.#waiters.add(request, taken, missing);
        void this.#statements.run();
        return answer;
      }
    } catch (error) {
      releaseHolds(taken, request);
      throw error;
    }
    this.#reserved(request, now);
    return undefined;
  }

  /**
   * Frees the places of a request that has ended, and corrects its limits per minute. The amounts of budgets stay
   * reserved until the usage is booked, because the store must know what was spent before another request uses the rest.
   */
  ended(counter: number, spent: Amounts): void {
    this.#outstanding.ended(counter, spent);
  }

  /** Ends the reservation of a request whose usage is booked. */
  settled(counter: number, spent: Amounts): void {
    this.#outstanding.settled(counter, spent);
  }

  /** Renews the reservation of a request that a proxy reported to this process as running. */
  renew(counter: number): void {
    this.#outstanding.renew(counter, this.#parts.monotonicMs());
  }

  /** Ends the reservation of a cancelled check. */
  release(counter: number): void {
    this.#outstanding.release(counter);
  }

  /**
   * Requests amounts that will be needed and returns the others. Call it about every 100 ms. Resolves when the store has
   * answered.
   */
  tick(): Promise<void> {
    const now = this.#parts.monotonicMs();
    this.#waiters.serveLate(
      now,
      (budget, amount) => this.#tryOffline(budget, amount, now),
      (request) => this.#reserved(request, now),
    );
    // A reservation expires only if no renewal from before its end is missing here.
    if (now - this.#returnedAtMs >= RETURN_GRACE_MS) this.#outstanding.expire(this.#answeredRequestMs);
    this.#review(now);
    const awaitsSettlements = this.#outstanding.size > 0 || this.#parts.awaitsSettlements?.() === true;
    const polls = this.#outage.lasts || (awaitsSettlements && now - this.#requestedAtMs >= POLL_MS);
    const hasChanges = this.#dirty.size > 0 || (this.#deferredIsDue && this.#deferred.size > 0);
    if (!polls && !hasChanges) return this.#statements.idle();
    this.#polls ||= polls;
    return this.#statements.run();
  }

  /** The time at which the last answered statement was sent. Every renewal from before it is known here. */
  get answeredRequestMs(): number {
    return this.#answeredRequestMs;
  }

  /**
   * Another server of the database answers, which may not know this process's holds. It must report them before the
   * process uses them.
   */
  storeReplaced(): void {
    this.#doubtAll();
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    await this.#statements.idle();
    for (const budget of this.#budgets.all()) this.#dirty.add(budget);
    const rounds = Math.ceil(this.#budgets.size / MAX_REQUESTS);
    for (let round = 0; round < rounds && !this.#outage.lasts; round++) await this.#statements.run();
  }

  get stats() {
    return {
      ...this.#budgets.sums,
      waiting: this.#waiters.size,
      outstanding: this.#outstanding.size,
      /** The number of reviews of a budget since the process began. */
      reviewed: this.#reviewed,
      isOffline: this.#outage.lasts,
    };
  }

  /**
   * Returns the shares of the budgets with the least left, at the last complete review, except those of ended periods.
   */
  get quotas(): readonly QuotaShare[] {
    const nowMs = this.#parts.nowMs();
    return this.#nearest.shares.filter(({ endsMs }) => nowMs < endsMs);
  }

  /** Reserves the amount and returns true. Returns undefined if only the store can decide. */
  #try(budget: PeriodBudget, amount: number, now: number): boolean | undefined {
    const { available, uncertain } = budget;
    const within = budget.isWithin(amount);
    if (available >= amount && within && !uncertain && !this.#isSilentTooLong(now)) {
      this.#take(budget, amount, now);
      return true;
    }
    if (this.#outage.lasts) return this.#tryOffline(budget, amount, now);
    return !within && now < budget.refusesUntilMs ? false : undefined;
  }

  #tryOffline(budget: PeriodBudget, amount: number, now: number): boolean {
    const { quota, used, available } = budget;
    if (budget.unit === 'places') return this.#tryPlaceOffline(budget, amount, now);
    // Spent amounts stay spent, so the process can reject without the store.
    if (used !== undefined && quota - budget.spent < amount) return false;
    if (used === undefined || available < amount || !budget.isWithin(amount) || this.#isSilentTooLong(now))
      throw new Fault('the database is unreachable and the amounts that this process holds are used up');
    budget.reserve(amount);
    return true;
  }

  /** A rate limit continues with the fair share of this process. */
  #tryPlaceOffline(budget: PeriodBudget, amount: number, now: number): boolean {
    const { quota, held, reserved } = budget;
    const share = Math.floor(quota / this.#processes);
    const most = Math.min(quota, this.#isSilentTooLong(now) ? share : Math.max(share, held));
    if (reserved + amount > most) return false;
    budget.reserve(amount);
    return true;
  }

  /** Reports whether the store may have taken the holds of this process. */
  #isSilentTooLong(now: number): boolean {
    return now - this.#answeredRequestMs >= this.#parts.holdTtlMs;
  }

  #take(budget: PeriodBudget, amount: number, now: number): void {
    budget.reserve(amount);
    if (needsRefill(budget, now)) (isCritical(budget, now) ? this.#dirty : this.#deferred).add(budget);
  }

  #reserved(request: ReservationRequest, now: number): void {
    this.#outstanding.add(request.counter, request.accounts, request, now);
  }

  #released(budget: PeriodBudget): void {
    // If little is left, other processes may be waiting for it.
    const scarce = this.#stopping || budget.left(budget.quota) < budget.quota * SCARCE_SHARE;
    (scarce ? this.#dirty : this.#deferred).add(budget);
  }

  /**
   * Reviews all budgets in bounded steps: returns surplus amounts, and forgets budgets that were not used for FORGET_MS.
   */
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
  #reviewOne(budget: PeriodBudget, now: number, nowMs: number): void {
    this.#reviewed += 1;
    const { tenant, quota, used, endsMs } = budget;
    if (budget.isMonthly && used !== undefined && quota > 0 && nowMs < endsMs)
      this.#nearest.offer({ tenant, ratio: used / quota, endsMs });
    if (budget.available < 0 || surplusOf(budget, this.#slice(budget, now)) > 0) this.#dirty.add(budget);
    if (!budget.isIdle || now - budget.usedAtMs < FORGET_MS) return;
    this.#dirty.delete(budget);
    this.#deferred.delete(budget);
    this.#budgets.forget(budget);
  }

  #slice(budget: PeriodBudget, now: number): number {
    return this.#stopping ? 0 : budgetSliceOf(budget, this.#processes, now);
  }

  async #sendStatement(): Promise<void> {
    // The statement also carries the requests of checks that arrive in this turn of the event loop.
    await Promise.resolve();
    const { store, processId, counts, monotonicMs } = this.#parts;
    const polls = this.#polls;
    this.#polls = false;
    if (this.#isSilentTooLong(monotonicMs())) this.#doubtAll();
    const batch = this.#collect(monotonicMs());
    if (batch.requests.length === 0 && !polls && this.#waiters.size === 0) return;
    this.#sequence += 1;
    this.#requestedAtMs = monotonicMs();
    counts.statements += 1;
    try {
      const { requests } = batch;
      const result = await store.hold({ processId, sequence: this.#sequence, requests, acked: this.#acked });
      // The store has kept the holds since the statement was sent, not since its answer arrived.
      this.#answeredRequestMs = this.#requestedAtMs;
      if (this.#outage.lasts) this.#returnedAtMs = monotonicMs();
      this.#outage.answered();
      this.#doubted = false;
      this.#apply(batch, result);
    } catch (error) {
      this.#outage.failed(error);
      for (const budget of batch.budgets) this.#doubt(budget);
    }
    const now = monotonicMs();
    this.#waiters.serve(
      (budget, amount) => this.#try(budget, amount, now),
      (request) => this.#reserved(request, now),
    );
  }

  #doubtAll(): void {
    if (this.#doubted) return;
    this.#doubted = true;
    for (const budget of this.#budgets.all()) this.#doubt(budget);
  }

  #doubt(budget: PeriodBudget): void {
    budget.uncertain = true;
    this.#dirty.add(budget);
  }

  #collect(now: number): HoldRequests {
    const requests: HoldRequest[] = [];
    const budgets: PeriodBudget[] = [];
    for (const budget of this.#candidates()) {
      const request = holdRequestFor(budget, this.#slice(budget, now), !this.#stopping, now);
      if (request === undefined) continue;
      requests.push(request);
      budgets.push(budget);
      if (requests.length >= MAX_REQUESTS) break;
    }
    if (this.#deferred.size === 0) this.#deferredIsDue = false;
    // For an uncertain budget, the store first reports the hold, so the statement requests nothing.
    this.#waiters.markRequested(new Set(budgets.filter(({ uncertain }) => !uncertain)));
    return { requests, budgets };
  }

  /**
   * Removes budgets that may need a request, each once, first those that checks wait for. The others keep their order.
   */
  *#candidates(): Generator<PeriodBudget, void> {
    const waited = this.#waiters.budgets();
    yield* waited;
    let examined = 0;
    for (const budgets of [this.#dirty, this.#deferred]) {
      for (const budget of budgets) {
        this.#dirty.delete(budget);
        this.#deferred.delete(budget);
        if (!waited.has(budget)) yield budget;
        examined += 1;
        if (examined >= MAX_EXAMINED) return;
      }
    }
  }

  #apply({ requests, budgets }: HoldRequests, { grants, settlements, renewals, processes }: HoldResult): void {
    const now = this.#parts.monotonicMs();
    this.#processes = Math.max(1, processes);
    for (const [i, request] of requests.entries()) {
      const budget = budgets[i];
      const grant = grants[i];
      if (budget === undefined || grant === undefined) continue;
      if (budget.unit === 'tokens') this.#parts.counts.tokensLeased += grant.granted;
      if (budget.uncertain) this.#dirty.add(budget);
      applyHoldGrant(budget, request, grant, now);
    }
    for (const { counters, ageMs } of renewals) {
      for (const counter of counters) {
        this.#outstanding.renew(counter, now - ageMs);
        this.#parts.onRenewed?.(counter, now - ageMs);
      }
    }
    this.#acked = settlements.map(({ id }) => id);
    for (const { counters, totals, costs } of settlements) {
      for (const [i, counter] of counters.entries())
        this.settled(counter, { tokens: totals[i] ?? 0, money: costs[i] ?? 0 });
    }
  }
}
