/** Admits or rejects a check by the limits: rates first, then the quota of tokens or of collections. */

import {
  type AdmissionRequest,
  type Estimates,
  type LimitDecision,
  type ReservedTokens,
  reservationAmount,
} from './admission.ts';
import type { Budgets, TokenReservationRequest } from './budgets.ts';
import { Calendar, type ZonedMinute } from './calendar.ts';
import type { AdmittedRequest, OpenRequests } from './open-requests.ts';
import type { SharedParts } from './parts.ts';
import type { CollectionStore } from './ports.ts';
import type { RateLimits, RateOutcome } from './rate-limits.ts';
import type { RateState } from './rate-state.ts';
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
  readonly ids: ReservationIds;
  readonly open: OpenRequests;
  readonly ends: UnreportedEnds;
}

const ADMITTED: LimitDecision = Object.freeze({ kind: 'admitted', reservation: undefined, rate: undefined });
const NO_TOKENS: ReservedTokens = Object.freeze({ prompt: 0, answer: 0 });
const UTC = 'UTC';

/** A request that has passed its rate limits. */
interface Passed {
  readonly request: AdmissionRequest;
  readonly rate: RateState | undefined;
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
    const { prompt, answer } = request.metered ? reservationAmount(request, this.#parts) : NO_TOKENS;
    const outcome = this.#parts.rates.admit(request, Math.max(1, prompt + answer), now);
    const decide = (result: RateOutcome, at: number | undefined): Decision =>
      result.kind === 'refused' ? result : this.#afterRates({ request, rate: result.rate, now: at });
    return outcome instanceof Promise ? outcome.then((late) => decide(late, undefined)) : decide(outcome, now);
  }

  #afterRates(passed: Passed): Decision {
    const { request, rate } = passed;
    if (request.metered) return this.#reserveTokens(passed);
    if (request.createsCollection) return this.#createCollection(passed);
    if (request.removedCollection !== undefined) {
      const digest = { prompt: 0, answer: collectionDigest(request.removedCollection) };
      return this.#admitted(passed, 'removes-collection', digest);
    }
    if (request.reportsUsage) return this.#admitted(passed, 'reports-usage', NO_TOKENS);
    if (request.readsResponse) return this.#admitted(passed, 'reads-response', NO_TOKENS);
    return rate === undefined ? ADMITTED : { kind: 'admitted', reservation: undefined, rate };
  }

  #reserveTokens({ request, rate, now }: Passed): Decision {
    const { tenantId: tenant, keyId: key = '', userId: user = '', monthlyTokens: quota } = request;
    const reserved = reservationAmount(request, this.#parts);
    const moment = this.#moment(request, now);
    const { minute, offset, period, periodEndsMs } = moment;
    const { id, counter } = this.#parts.ids.issue(minute, quota === undefined ? 'usage' : 'budget', offset, reserved);
    const admitted: AdmittedRequest = { counter, tenant, key, user, prompt: reserved.prompt, minute, offset };
    if (quota === undefined) {
      this.#opened(admitted);
      return { kind: 'admitted', reservation: id, rate };
    }
    const amount = reserved.prompt + reserved.answer;
    const reservation = { tenant, period, periodEndsMs, quota, amount, counter };
    const decide = (granted: boolean): LimitDecision => {
      if (!granted) return this.#refuseTokens(reservation, rate);
      this.#opened(admitted);
      this.#parts.counts.quotaAllowed += 1;
      return { kind: 'admitted', reservation: id, rate };
    };
    const outcome = this.#parts.budgets.reserve(reservation, now);
    return outcome instanceof Promise ? outcome.then(decide) : decide(outcome);
  }

  #refuseTokens(reservation: TokenReservationRequest, rate: RateState | undefined): LimitDecision {
    this.#parts.counts.quotaRefused += 1;
    const resetsAt = new Date(reservation.periodEndsMs).toISOString();
    const left = this.#parts.budgets.left(reservation);
    const rest = left === undefined ? 'has fewer' : `has ${left}`;
    const detail = `This request needs up to ${reservation.amount} tokens, but the tenant's monthly quota of ${reservation.quota} ${rest} left. The quota resets at ${resetsAt}.`;
    return { kind: 'refused', code: 'insufficient_quota', detail, resetsAt, rate };
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
      const detail = `The tenant already has ${max} collections, which is its limit. Delete a collection first.`;
      return { kind: 'refused', code: 'insufficient_quota', detail, resetsAt: undefined, rate };
    });
  }

  #admitted({ request, rate, now }: Passed, kind: ReservationKind, reserved: ReservedTokens): LimitDecision {
    const { minute, offset } = this.#moment(request, now);
    this.#expectsEnd(request.tenantId);
    return { kind: 'admitted', reservation: this.#parts.ids.issue(minute, kind, offset, reserved).id, rate };
  }

  #opened(admitted: AdmittedRequest): void {
    if (this.#expectsEnd(admitted.tenant)) this.#parts.open.add(admitted);
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
