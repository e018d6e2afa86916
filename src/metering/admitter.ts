/** Admits or rejects a check by the limits: rates first, then budgets, or the quota of collections. */

import { costOf, type Price } from '../decision/prices.ts';
import type { Account, Amounts } from './account.ts';
import {
  type AdmissionRequest,
  type Estimates,
  type LimitDecision,
  type ReservedTokens,
  reservationAmount,
} from './admission.ts';
import type { Budgets } from './budgets.ts';
import { Calendar, type ZonedMinute } from './calendar.ts';
import { type Hold, refuseFor, scarcestOf } from './hold.ts';
import type { AdmittedRequest, OpenRequests } from './open-requests.ts';
import type { SharedParts } from './parts.ts';
import type { CollectionStore } from './ports.ts';
import type { RateLimits, RateOutcome } from './rate-limits.ts';
import type { PlannedRate } from './rate-plans.ts';
import type { RateState } from './rate-state.ts';
import type { RequestPlan, RequestPlans } from './request-plans.ts';
import { collectionDigest, type ReservationIds, type ReservationKind } from './reservation-ids.ts';
import type { UnreportedEnds } from './unreported-ends.ts';

interface AdmitterParts extends SharedParts, Estimates {
  readonly store: CollectionStore;
  readonly reservationTtlMs: number;
  readonly metersItself?: (tenant: string) => boolean;
  /** The store's time, milliseconds since the epoch. */
  readonly nowMs: (monotonicMs?: number) => number;
  readonly rates: RateLimits;
  readonly budgets: Budgets;
  readonly plans: RequestPlans;
  /** Whether an admission names the budget with the smallest share left. Default: false. */
  readonly reportsBudget?: boolean;
  readonly ids: ReservationIds;
  readonly open: OpenRequests;
  readonly ends: UnreportedEnds;
}

export const ADMITTED: LimitDecision = Object.freeze({ kind: 'admitted', reservation: undefined, rate: undefined });
const NO_RATES: readonly PlannedRate[] = [];
export const NO_TOKENS: ReservedTokens = Object.freeze({ prompt: 0, answer: 0 });
/** So that an exhausted budget rejects a request whose cost only its end shows, or that costs nothing. */
const LEAST = 1;
const UTC = 'UTC';

/** A request that has passed its rate limits. */
interface Passed {
  readonly request: AdmissionRequest;
  /** The tokens that it may spend. */
  readonly reserved: ReservedTokens;
  readonly rate: RateState | undefined;
  readonly tokenRate: RateState | undefined;
  /** The tokens that it consumed of its limits per minute. */
  readonly account: Account | undefined;
  /** Undefined: it is not known, or the check has waited. */
  readonly plan: RequestPlan | undefined;
  /** The monotonic time, if the check has read it and did not wait since. */
  readonly now: number | undefined;
}

type Decision = LimitDecision | Promise<LimitDecision>;

export class Admitter {
  readonly #parts: AdmitterParts;
  readonly #calendar = new Calendar();

  constructor(parts: AdmitterParts) {
    this.#parts = parts;
  }

  /** A request that passes its rate limits has consumed its units even if a quota then rejects it. */
  admit(request: AdmissionRequest): Decision {
    const now = this.#parts.monotonicMs();
    const reserved = request.metered ? reservationAmount(request, this.#parts) : NO_TOKENS;
    const spends = request.metered || request.reportsUsage;
    const plan = spends ? this.#parts.plans.of(request, this.#parts.nowMs(now)) : undefined;
    const outcome = this.#parts.rates.admit(request, plan?.rates ?? NO_RATES, tokensOf(reserved), now);
    const decide = (result: RateOutcome, at: number | undefined): Decision => {
      if (result.kind === 'refused') return result;
      const { rate, tokenRate, account } = result;
      // A period of the plan may have ended while the check waited.
      const valid = at === undefined ? undefined : plan;
      return this.#afterRates({ request, reserved, rate, tokenRate, account, plan: valid, now: at });
    };
    return outcome instanceof Promise ? outcome.then((late) => decide(late, undefined)) : decide(outcome, now);
  }

  #afterRates(passed: Passed): Decision {
    const { request, rate } = passed;
    if (request.metered || request.reportsUsage) return this.#reserve(passed);
    if (request.createsCollection) return this.#createCollection(passed);
    if (request.removedCollection !== undefined) {
      const digest = { prompt: 0, answer: collectionDigest(request.removedCollection) };
      return this.#admitted(passed, 'removes-collection', digest);
    }
    if (request.readsResponse) return this.#admitted(passed, 'reads-response', NO_TOKENS);
    return rate === undefined ? ADMITTED : { kind: 'admitted', reservation: undefined, rate };
  }

  /** Reserves the amounts that the request may spend in its budgets. */
  #reserve(passed: Passed): Decision {
    const { request, reserved, account, now } = passed;
    const { tenantId: tenant, keyId: key = '', userId: user = '', decideByMs } = request;
    const nowMs = this.#parts.nowMs(now);
    const { minute, offset } = this.#calendar.at(request.timezone ?? UTC, nowMs);
    const plan = passed.plan ?? this.#parts.plans.of(request, nowMs);
    const { holds, price } = plan;
    const accounts = account === undefined ? plan.accounts : [...plan.accounts, account];
    const { id, counter } = this.#parts.ids.issue(minute, kindOf(request, accounts), offset, reserved);
    const admitted = { counter, tenant, key, user, prompt: reserved.prompt, minute, offset, charges: plan };
    if (accounts.length === 0) return this.#admittedBy(plan, passed, id, admitted);
    const { tokens, money } = amountsOf(reserved, price);
    const decide = (refusing: Hold | undefined): LimitDecision => {
      if (refusing !== undefined) {
        account?.release(tokens, 0);
        this.#parts.counts.quotaRefused += 1;
        return refuseFor(refusing, tokens, passed.rate);
      }
      if (holds.length > 0) this.#parts.counts.quotaAllowed += 1;
      return this.#admittedBy(plan, passed, id, admitted);
    };
    const fail = (error: unknown): never => {
      account?.release(tokens, 0);
      throw error;
    };
    try {
      const outcome = this.#parts.budgets.reserve({ holds, accounts, counter, tokens, money, decideByMs }, now);
      return outcome instanceof Promise ? outcome.then(decide, fail) : decide(outcome);
    } catch (error) {
      return fail(error);
    }
  }

  #admittedBy(plan: RequestPlan, passed: Passed, id: string, admitted: AdmittedRequest): LimitDecision {
    const { request, rate, tokenRate } = passed;
    const expectsEnd = this.#expectsEnd(request.tenantId);
    if (expectsEnd && request.metered) this.#parts.open.add(admitted);
    return {
      kind: 'admitted',
      reservation: id,
      rate,
      tokenRate,
      charges: expectsEnd ? plan.text : undefined,
      budget: this.#parts.reportsBudget === true ? scarcestOf(plan.holds) : undefined,
    };
  }

  #createCollection(passed: Passed): Decision {
    const { request, rate, now } = passed;
    const { tenantId: tenant, maxCollections: max } = request;
    if (max === undefined) return this.#admitted(passed, 'adds-collection', NO_TOKENS);
    const { store, processId, reservationTtlMs, counts, ids } = this.#parts;
    const { minute, offset } = this.#moment(request, now);
    const { id, counter } = ids.issue(minute, 'adds-collection', offset, NO_TOKENS);
    counts.statements += 1;
    return store.reserveCollection({ processId, counter, tenant, max, ttlMs: reservationTtlMs }).then((reserved) => {
      if (reserved) {
        this.#expectsEnd(tenant);
        counts.collectionsAllowed += 1;
        return { kind: 'admitted', reservation: id, rate };
      }
      counts.collectionsRefused += 1;
      return refusedCollection(max, rate);
    });
  }

  #admitted({ request, rate, now }: Passed, kind: ReservationKind, reserved: ReservedTokens): LimitDecision {
    const { minute, offset } = this.#moment(request, now);
    this.#expectsEnd(request.tenantId);
    return { kind: 'admitted', reservation: this.#parts.ids.issue(minute, kind, offset, reserved).id, rate };
  }

  /** Counts the request, unless the tenant's usage comes from events: then the proxy need not report its end. */
  #expectsEnd(tenant: string): boolean {
    const expects = this.#parts.metersItself?.(tenant) !== true;
    if (expects) this.#parts.ends.admitted();
    return expects;
  }

  #moment({ timezone }: AdmissionRequest, now: number | undefined): ZonedMinute {
    return this.#calendar.at(timezone ?? UTC, this.#parts.nowMs(now));
  }
}

/** Returns the amounts that a request reserves, at least one of each. */
export function amountsOf(reserved: ReservedTokens, price: Price | undefined): Amounts {
  const money = Math.max(
    LEAST,
    price === undefined ? 0 : costOf(price, { prompt: reserved.prompt, completion: reserved.answer }),
  );
  return { tokens: tokensOf(reserved), money };
}

export function refusedCollection(max: number, rate: RateState | undefined): LimitDecision {
  const detail = `The tenant already has ${max} collections, which is its limit. Delete a collection first.`;
  return { kind: 'refused', code: 'insufficient_quota', detail, resetsAt: undefined, rate };
}

function tokensOf({ prompt, answer }: ReservedTokens): number {
  return Math.max(LEAST, prompt + answer);
}

function kindOf({ metered }: AdmissionRequest, accounts: readonly Account[]): ReservationKind {
  if (metered) return accounts.length === 0 ? 'usage' : 'budget';
  return accounts.length === 0 ? 'reports-usage' : 'reports-usage-held';
}
