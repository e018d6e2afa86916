/**
 * Token quotas of calendar months, over all processes. The store grants each process a hold on a tenant's budget ahead
 * of need, so that a check reserves from memory the tokens that its request may spend. After the request, the process
 * that received the report of its end books the actual usage, and the reserved tokens become available again in the
 * process that reserved them.
 *
 * - If enough tokens are available, the process reserves them at once.
 * - If the store recently reported that too few are left, the process rejects the check at once.
 * - Otherwise the check waits for one statement, which carries the requests of all waiting checks.
 *
 * Invariants: at every grant, the spent and held tokens of all processes together are at most the quota. No process
 * reserves more than it holds. A process returns tokens that it does not need. A reservation that is neither settled
 * nor renewed expires, and the store takes the holds of a lost process.
 *
 * While the store is unreachable, each process continues with the tokens that it holds. A check that needs more is a
 * fault, because the process does not know what others spent.
 */

import { SingleFlight } from '../concurrency/single-flight.ts';
import { Fault } from '../domain/errors.ts';
import type { TokenBudget } from './budget.ts';
import { BudgetRegistry, type PeriodOfTenant } from './budget-registry.ts';
import { applyHoldGrant, type HoldRequests, holdRequestFor } from './hold-requests.ts';
import { NearestQuotas, type QuotaShare } from './nearest-quotas.ts';
import { Outstanding } from './outstanding.ts';
import { Outage, type SharedParts } from './parts.ts';
import type { HoldRequest, HoldResult, TokenStore } from './ports.ts';
import type { EndedReservation } from './reservations.ts';
import { isCritical, needsRefill, surplusOf, tokenSliceOf } from './slices.ts';
import { TokenWaiters } from './token-waiters.ts';

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
   * Reports whether settlements and renewals by other processes matter even if no tokens are reserved. Default: never.
   */
  readonly awaitsSettlements?: () => boolean;
}

export interface TokenReservationRequest extends PeriodOfTenant {
  readonly quota: number;
  readonly amount: number;
  /** The reservation's number in this process. */
  readonly counter: number;
}

/** The interval at which the process fetches settlements of its reservations if it has no other statement to send. */
const POLL_MS = 1000;
const REVIEW_MS = 1000;
const FORGET_MS = 60_000;
/** The time after an outage in which other processes pass on the renewals that they kept during it. */
const RETURN_GRACE_MS = 5000;
/** If less than this share of a quota is left, the process returns released tokens at once. */
const SCARCE_SHARE = 0.1;
const MAX_REQUESTS = 1000;
/** The largest number of budgets that are examined for one statement. */
const MAX_EXAMINED = 5 * MAX_REQUESTS;
/** The largest number of budgets that one tick reviews. */
export const MAX_REVIEWED = 2000;

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
  readonly #dirty = new Set<TokenBudget>();
  /** Budgets with unsent changes that may wait for the next review or the next statement. */
  readonly #deferred = new Set<TokenBudget>();
  #deferredIsDue = false;
  /** The rest of the current review. */
  #reviewing: Iterator<TokenBudget> | undefined;
  #reviewed = 0;
  readonly #nearest = new NearestQuotas();
  readonly #waiters = new TokenWaiters();
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
    this.#budgets = new BudgetRegistry(parts.maxBudgets);
    this.#outstanding = new Outstanding({ ...parts, onEnded: (ended, spent) => this.#release(ended, spent) });
    this.#outage = new Outage(parts);
    const now = parts.monotonicMs();
    this.#answeredRequestMs = now;
    this.#requestedAtMs = now;
    this.#reviewedAtMs = now;
  }

  /**
   * Reserves tokens for a request.
   * @returns true if reserved, false if too few are left; a promise if the check must wait for the store. Throws and
   *   rejects with a Fault.
   */
  reserve(reservation: TokenReservationRequest, now = this.#parts.monotonicMs()): boolean | Promise<boolean> {
    const { amount, counter, quota } = reservation;
    if (amount > quota) return false;
    const budget = this.#budgets.find(reservation, now);
    budget.quota = quota;
    budget.lastReservation = amount;
    budget.usedAtMs = now;
    budget.demand.record(amount);
    // Waiting checks come first.
    const known = budget.waiting > 0 ? undefined : this.#try(budget, amount, counter, now);
    if (known !== undefined) return known;
    const answer = this.#waiters.add(budget, amount, counter);
    void this.#statements.run();
    return answer;
  }

  /**
   * Returns the tokens that a request of this process could reserve, as the store last reported; undefined before its
   * first answer.
   */
  left(reservation: TokenReservationRequest, now = this.#parts.monotonicMs()): number | undefined {
    const { used, available } = this.#budgets.find(reservation, now);
    return used === undefined ? undefined : Math.max(0, reservation.quota - used + Math.max(0, available));
  }

  /** Ends the reservation of a request whose usage is booked. */
  settled(counter: number, spent: number): void {
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
   * Requests tokens that will be needed and returns the others. Call it about every 100 ms. Resolves when the store has
   * answered.
   */
  tick(): Promise<void> {
    const now = this.#parts.monotonicMs();
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

  /** Returns all tokens that are not reserved. */
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

  /** Returns undefined if only the store can decide. */
  #try(budget: TokenBudget, amount: number, counter: number, now: number): boolean | undefined {
    const { quota, used, available, uncertain } = budget;
    const within = used === undefined || quota - used + available >= amount;
    if (available >= amount && within && !uncertain && !this.#isSilentTooLong(now)) {
      this.#reserve(budget, amount, counter, now);
      if (needsRefill(budget, now)) (isCritical(budget, now) ? this.#dirty : this.#deferred).add(budget);
      return true;
    }
    if (this.#outage.lasts) return this.#tryOffline(budget, amount, counter, now);
    return !within && now < budget.refusesUntilMs ? false : undefined;
  }

  #tryOffline(budget: TokenBudget, amount: number, counter: number, now: number): boolean {
    const { quota, used, available } = budget;
    // Spent tokens stay spent, so the process can reject without the store.
    if (used !== undefined && quota - budget.spent < amount) return false;
    const within = used !== undefined && quota - used + available >= amount;
    if (available < amount || !within || this.#isSilentTooLong(now))
      throw new Fault('the database is unreachable and the tokens that this process holds are used up');
    this.#reserve(budget, amount, counter, now);
    return true;
  }

  /** Reports whether the store may have taken the holds of this process. */
  #isSilentTooLong(now: number): boolean {
    return now - this.#answeredRequestMs >= this.#parts.holdTtlMs;
  }

  #reserve(budget: TokenBudget, amount: number, counter: number, now: number): void {
    budget.reserve(amount);
    this.#outstanding.add(counter, budget, amount, now);
  }

  #release({ budget, amount }: EndedReservation, spent: number): void {
    budget.release(amount, spent);
    // If little is left, other processes may be waiting for it.
    const scarce = this.#stopping || budget.left(budget.quota) < budget.quota * SCARCE_SHARE;
    (scarce ? this.#dirty : this.#deferred).add(budget);
  }

  /**
   * Reviews all budgets in bounded steps: returns surplus tokens, and forgets budgets that were not used for FORGET_MS.
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
  #reviewOne(budget: TokenBudget, now: number, nowMs: number): void {
    this.#reviewed += 1;
    const { tenant, quota, used, endsMs } = budget;
    if (used !== undefined && quota > 0 && nowMs < endsMs) this.#nearest.offer({ tenant, ratio: used / quota, endsMs });
    if (budget.available < 0 || surplusOf(budget, this.#slice(budget, now)) > 0) this.#dirty.add(budget);
    if (!budget.isIdle || now - budget.usedAtMs < FORGET_MS) return;
    this.#dirty.delete(budget);
    this.#deferred.delete(budget);
    this.#budgets.forget(budget);
  }

  #slice(budget: TokenBudget, now: number): number {
    return this.#stopping ? 0 : tokenSliceOf(budget, this.#processes, now);
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
    this.#waiters.serve((budget, amount, counter) => this.#try(budget, amount, counter, now));
  }

  #doubtAll(): void {
    if (this.#doubted) return;
    this.#doubted = true;
    for (const budget of this.#budgets.all()) this.#doubt(budget);
  }

  #doubt(budget: TokenBudget): void {
    budget.uncertain = true;
    this.#dirty.add(budget);
  }

  #collect(now: number): HoldRequests {
    const requests: HoldRequest[] = [];
    const budgets: TokenBudget[] = [];
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
  *#candidates(): Generator<TokenBudget, void> {
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
      this.#parts.counts.tokensLeased += grant.granted;
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
    for (const { counters, totals } of settlements)
      for (const [i, counter] of counters.entries()) this.settled(counter, totals[i] ?? 0);
  }
}
