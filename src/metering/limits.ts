/**
 * Lines 16 and 17 of the decision, and what follows when the request is over: the one way into this room.
 *
 * A check asks `admit`, whose answer is at hand when its tenant is warm. The end of a request, heard of in whichever process, goes to
 * `settle`. Rates come first: who passes a rate limit has used it, also when a quota then refuses.
 */

import { StoreClock } from '../domain/store-clock.ts';
import {
  type AdmissionRequest,
  type Estimates,
  type LimitDecision,
  type RateRefusal,
  type ReservedTokens,
  reservationAmount,
} from './admission.ts';
import { Budgets, type TokenReservationRequest } from './budgets.ts';
import { Calendar, type Moment } from './calendar.ts';
import { collectionDigest } from './collection-digest.ts';
import { newCounts } from './counts.ts';
import type { QuotaShare } from './nearest-quotas.ts';
import { type AdmittedRequest, OpenRequests } from './open-requests.ts';
import type { MeteringStore } from './ports.ts';
import { RateLeases, type RateResult } from './rate-leases.ts';
import { type RateState, tighter } from './rate-state.ts';
import { ReservationChanges } from './reservation-changes.ts';
import { type Reservation, ReservationIds, type ReservationKind } from './reservation-ids.ts';
import { type FinishedUsage, settlementOf } from './settlement.ts';
import { Settler } from './settler.ts';
import { UnreportedEnds } from './unreported-ends.ts';

export interface LimitsParts extends Estimates {
  readonly store: MeteringStore;
  /** This process, see `processIdOf`. */
  readonly processId: string;
  /** 16 bytes, the same in all processes: makes reservation ids. */
  readonly reservationKey: Uint8Array;
  /** Other processes may issue ids under this key while the installation changes its `secret-key`. */
  readonly otherReservationKey?: Uint8Array | undefined;
  /** Of a rate's window; 60000 but in tests. */
  readonly windowMs: number;
  /** A reservation lives so long without being settled or renewed. */
  readonly reservationTtlMs: number;
  /** What a process held that the store did not hear of for so long is free again. Default: `reservationTtlMs`, but at least a minute. */
  readonly holdTtlMs?: number;
  /** The store's clock as this process knows it. Months, days and ages of reservations go by it. Default: learned from leases only. */
  readonly clock?: StoreClock;
  /** The machine's own clock, milliseconds since the epoch; used until the store's clock is known. */
  readonly now: () => number;
  readonly monotonicMs: () => number;
  /** Whether a tenant's usage comes by events, so that the ends of its requests are not booked. */
  readonly metersItself?: (tenant: string) => boolean;
  /** Told when the store goes away, and of what it refuses. */
  readonly onFault?: (error: unknown) => void;
  /** Called with the number of requests whose ends no proxy reports, and with 0 when ends are reported again. */
  readonly onUnreported?: (requests: number) => void;
  /** Rate subjects of each kind, and token budgets, at most. */
  readonly maxSubjects?: number;
  readonly maxReservations?: number;
  /** Ends of requests that wait to be booked, at most; and renewals that wait to be passed on. */
  readonly maxSettlements?: number;
}

/** The tighter limit's state where there is one, or a refusal. */
type RateOutcome = RateRefusal | { readonly kind: 'passed'; readonly rate: RateState | undefined };

const ADMITTED: LimitDecision = Object.freeze({ kind: 'admitted', reservation: undefined, rate: undefined });
const NO_TOKENS: ReservedTokens = Object.freeze({ prompt: 0, answer: 0 });
const UTC = 'UTC';
const MINUTE_MS = 60_000;
const TICK_MS = 100;
const TIDY_MS = 30_000;
/** A living process speaks to the store every 5 s. Restarts and failovers of the store, and long pauses, must not look like its end. */
const MIN_HOLD_TTL_MS = 60_000;
const TIDY_BATCH = 5000;
const MAX_TIDY_ROUNDS = 20;
/** The maximum number of requests under way that one process notes in the store. */
const MAX_OPEN = 100_000;
/** A request may take so long; an id that is older settles nothing. It is remembered a little longer what was settled. */
const SETTLE_WITHIN_MINUTES = 24 * 60;
const SETTLEMENT_KEEP_MS = 26 * 3_600_000;
/** How far the store's clock may be set back, for example by a fail-over, before the ends of requests admitted earlier count as unknown. */
const CLOCK_SKEW_MINUTES = 5;

export class Limits {
  readonly #parts: LimitsParts;
  readonly #counts = newCounts();
  readonly #clock: StoreClock;
  readonly #rates: RateLeases;
  readonly #budgets: Budgets;
  readonly #ids: ReservationIds;
  readonly #otherIds: ReservationIds | undefined;
  readonly #settler: Settler;
  readonly #changes: ReservationChanges;
  readonly #open: OpenRequests;
  readonly #ends: UnreportedEnds;
  readonly #holdTtlMs: number;
  readonly #calendar = new Calendar();
  #timers: NodeJS.Timeout[] = [];
  #tidying: Promise<void> | undefined;

  constructor(parts: LimitsParts) {
    const {
      maxSubjects = 200_000,
      maxReservations = 1_000_000,
      maxSettlements = 200_000,
      clock = new StoreClock(),
    } = parts;
    const shared = { ...parts, clock, counts: this.#counts };
    this.#parts = parts;
    this.#clock = clock;
    this.#holdTtlMs = parts.holdTtlMs ?? Math.max(MIN_HOLD_TTL_MS, parts.reservationTtlMs);
    this.#ids = new ReservationIds(parts.reservationKey, parts.processId);
    const other = parts.otherReservationKey;
    this.#otherIds = other === undefined ? undefined : new ReservationIds(other, parts.processId);
    this.#rates = new RateLeases({ ...shared, maxSubjects });
    this.#budgets = new Budgets({
      ...shared,
      nowMs: () => this.#nowMs(),
      holdTtlMs: this.#holdTtlMs,
      maxBudgets: maxSubjects,
      maxReservations,
      onRenewed: (counter, heardAtMs) => this.#open.renew(counter, heardAtMs),
      awaitsSettlements: () => this.#open.size > 0,
    });
    this.#changes = new ReservationChanges({ ...shared, maxWaiting: maxSettlements });
    this.#open = new OpenRequests({ ...shared, maxOpen: MAX_OPEN });
    this.#ends = new UnreportedEnds({
      ...shared,
      lifeMs: parts.reservationTtlMs,
      ...(parts.onUnreported === undefined ? {} : { onChange: parts.onUnreported }),
    });
    this.#settler = new Settler({
      ...shared,
      maxWaiting: maxSettlements,
      onBooked: ({ processId, held, counter, total }) => {
        if (processId !== parts.processId) return;
        this.#open.ended(counter);
        if (held) this.#budgets.settled(counter, total);
      },
    });
  }

  /** The answer itself when it is at hand. Throws and rejects with a Fault when nobody can say. */
  admit(request: AdmissionRequest): LimitDecision | Promise<LimitDecision> {
    if (request.tenantRpm === undefined && request.keyRpm === undefined)
      return this.#afterRate(request, undefined, undefined);
    // One look at the clock for all, until somebody has to wait.
    const now = this.#parts.monotonicMs();
    const outcome = this.#passRates(request, now);
    if (outcome instanceof Promise) return outcome.then((passed) => this.#decide(request, passed, undefined));
    return this.#decide(request, outcome, now);
  }

  /** A request is over; told in any process, any number of times. Never throws, and nobody waits for it. */
  settle(finished: FinishedUsage): void {
    const reservation = this.#read(finished.reservation);
    if (reservation === undefined) {
      this.#counts.unknown += 1;
      return;
    }
    this.#reported(reservation);
    if (!this.#isCurrent(reservation)) {
      this.#counts.late += 1;
      return;
    }
    const books = finished.tenant === undefined || this.#parts.metersItself?.(finished.tenant) !== true;
    const settlement = settlementOf(finished, reservation, books);
    if (settlement === undefined) {
      this.#counts.unknown += 1;
      return;
    }
    if (settlement.estimated) this.#counts.estimated += 1;
    this.#settler.add(settlement);
  }

  /** A request is still running; reported in any process, any number of times. Never throws, and nobody waits for it. */
  renew(reservation: string): void {
    const current = this.#currentOf(reservation);
    if (current === undefined) return;
    this.#reported(current);
    const { kind, processId, counter } = current;
    switch (kind) {
      case 'budget':
      case 'usage':
        if (processId === this.#parts.processId) this.#renewOwn(counter);
        else this.#changes.add({ kind: 'renew-tokens', processId, counter });
        break;
      case 'adds-collection':
        this.#changes.add({ kind: 'renew-collection', processId, counter });
        break;
      case 'removes-collection':
      case 'reads-response':
      case 'reports-usage':
        // Nothing is set aside for these.
        break;
      default:
        kind satisfies never;
    }
  }

  /**
   * A check that this process admitted was cancelled: gives back the tokens or the collection that it had reserved. The rate limit keeps
   * what the check took. If the request ran all the same, its end is booked. Ignores reservations of other processes. Never throws.
   */
  release(reservation: string): void {
    const { kind, processId, counter } = this.#currentOf(reservation) ?? {};
    if (counter === undefined || processId !== this.#parts.processId) return;
    this.#ends.released();
    this.#open.ended(counter);
    if (kind === 'budget') this.#budgets.release(counter);
    if (kind !== 'adds-collection') return;
    this.#counts.reservationsReleased += 1;
    this.#changes.add({ kind: 'release-collection', processId, counter });
  }

  /** Another server of the database answers, which may lack the last changes: what this process holds there is asked for again. */
  storeReplaced(): void {
    this.#rates.storeReplaced();
    this.#budgets.storeReplaced();
  }

  /** Leases ahead of need, books what ended, gives back what is not needed. Resolves when the store has answered. */
  async tick(): Promise<void> {
    await Promise.all([
      this.#rates.tick(),
      this.#budgets.tick(),
      this.#settler.tick(),
      this.#changes.tick(),
      this.#open.tick(this.#budgets.heardAtMs),
      this.#ends.tick(),
    ]);
  }

  /** Makes itself known to the store, then ticks by itself. Does not reject: a store that is away is asked again. */
  async start(): Promise<void> {
    const ticking = setInterval(() => void this.tick(), TICK_MS);
    const tidying = setInterval(() => void this.tidy(), TIDY_MS);
    ticking.unref();
    tidying.unref();
    this.#timers = [ticking, tidying];
    await this.tick();
  }

  /** Books what is known and gives back what is not used, as far as the store can be reached. */
  async stop(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    this.#timers = [];
    await this.#tidying;
    await Promise.all([this.#settler.stop(), this.#changes.stop()]);
    await Promise.all([this.#rates.stop(), this.#budgets.stop()]);
  }

  /** Removes what nobody will ask for again, and what lost processes held. Never rejects. */
  tidy(): Promise<void> {
    this.#tidying ??= this.#tidy().finally(() => {
      this.#tidying = undefined;
    });
    return this.#tidying;
  }

  get stats() {
    // Read first: it brings the count of what is stranded up to now.
    const rates = this.#rates.stats;
    const waiting = { settlementsWaiting: this.#settler.waiting, changesWaiting: this.#changes.waiting };
    const unreported = this.#ends.requests;
    return { ...this.#counts, rates, budgets: this.#budgets.stats, ...waiting, unreported };
  }

  /** Returns the number of requests whose ends no proxy reports, for longer than a reservation lives; 0 while ends are reported. */
  get unreported(): number {
    return this.#ends.requests;
  }

  #renewOwn(counter: number): void {
    this.#budgets.renew(counter);
    this.#open.renew(counter, this.#parts.monotonicMs());
  }

  #reported({ processId }: Reservation): void {
    if (processId === this.#parts.processId) this.#ends.reported();
  }

  /** The ends of a tenant's requests matter unless its usage comes by events, and then the proxy need not report any. */
  #expectsEnd(tenant: string): boolean {
    const expects = this.#parts.metersItself?.(tenant) !== true;
    if (expects) this.#ends.admitted();
    return expects;
  }

  #opened(opened: AdmittedRequest): void {
    if (this.#expectsEnd(opened.tenant)) this.#open.add(opened);
  }

  /** Returns the shares of monthly tokens that are spent or held, of the tenants with the least left, as this process knew them a review ago. */
  get quotas(): readonly QuotaShare[] {
    return this.#budgets.quotas;
  }

  #currentOf(id: string): Reservation | undefined {
    const reservation = this.#read(id);
    return reservation !== undefined && this.#isCurrent(reservation) ? reservation : undefined;
  }

  /** The wrong key gives a random minute, which is almost never a current one. */
  #read(id: string): Reservation | undefined {
    const reservation = this.#ids.read(id);
    if (this.#otherIds === undefined || reservation === undefined || this.#isCurrent(reservation)) return reservation;
    const other = this.#otherIds.read(id);
    return other !== undefined && this.#isCurrent(other) ? other : reservation;
  }

  #isCurrent({ minute }: Reservation): boolean {
    const now = Math.floor(this.#nowMs() / MINUTE_MS);
    return minute >= now - SETTLE_WITHIN_MINUTES && minute <= now + CLOCK_SKEW_MINUTES;
  }

  async #tidy(): Promise<void> {
    const { store, windowMs, reservationTtlMs, monotonicMs, onFault } = this.#parts;
    // After an outage of the store nobody was heard of for a while: only silence that this process could have broken is a sign.
    const silenceCounts = monotonicMs() - this.#rates.reachableSinceMs >= this.#holdTtlMs;
    const holdTtlMs = silenceCounts ? this.#holdTtlMs : SETTLEMENT_KEEP_MS;
    const options = { windowMs, holdTtlMs, settlementKeepMs: SETTLEMENT_KEEP_MS, batch: TIDY_BATCH };
    try {
      for (let round = 0; round < MAX_TIDY_ROUNDS; round++) {
        this.#counts.statements += 1;
        const { booked, more } = await store.bookLost({ ...options, reservationTtlMs });
        this.#counts.lostBooked += booked;
        if (!more) break;
      }
      for (let round = 0; round < MAX_TIDY_ROUNDS; round++) {
        this.#counts.statements += 1;
        const { more } = await store.tidy(options);
        if (!more) return;
      }
    } catch (error) {
      onFault?.(error);
    }
  }

  #passRates(request: AdmissionRequest, now: number): RateOutcome | Promise<RateOutcome> {
    const { tenantId, tenantRpm, keyId, keyRpm } = request;
    const tenant = tenantRpm === undefined ? undefined : this.#rates.take('tenant', tenantId, tenantRpm, now);
    if (tenant instanceof Promise) return this.#waitForRates(request, tenant);
    if (tenant?.kind === 'refused' || keyId === undefined || keyRpm === undefined)
      return this.#together(tenant, undefined);
    const key = this.#rates.take('key', keyId, keyRpm, now);
    return key instanceof Promise ? key.then((taken) => this.#together(tenant, taken)) : this.#together(tenant, key);
  }

  async #waitForRates({ keyId, keyRpm }: AdmissionRequest, pending: Promise<RateResult>): Promise<RateOutcome> {
    const tenant = await pending;
    if (tenant.kind === 'refused' || keyId === undefined || keyRpm === undefined)
      return this.#together(tenant, undefined);
    return this.#together(tenant, await this.#rates.take('key', keyId, keyRpm));
  }

  /** Both or none. */
  #together(tenant: RateResult | undefined, key: RateResult | undefined): RateOutcome {
    if (tenant?.kind === 'refused') return this.#refuseRate('This tenant', tenant.state);
    if (key?.kind === 'refused') {
      if (tenant !== undefined) this.#rates.release(tenant.windows);
      return this.#refuseRate('This API key', key.state);
    }
    this.#counts.rateAllowed += 1;
    return { kind: 'passed', rate: tighter(tenant?.state, key?.state) };
  }

  #refuseRate(who: string, rate: RateState): RateRefusal {
    this.#counts.rateRefused += 1;
    const detail = `${who} may send ${rate.limit} requests per minute. Try again in ${rate.resetSeconds} s.`;
    return { kind: 'refused', code: 'rate_limit_exceeded', detail, rate };
  }

  #decide(
    request: AdmissionRequest,
    outcome: RateOutcome,
    now: number | undefined,
  ): LimitDecision | Promise<LimitDecision> {
    return outcome.kind === 'refused' ? outcome : this.#afterRate(request, outcome.rate, now);
  }

  #afterRate(
    request: AdmissionRequest,
    rate: RateState | undefined,
    now: number | undefined,
  ): LimitDecision | Promise<LimitDecision> {
    if (request.metered) return this.#spend(request, rate, now);
    if (request.createsCollection) return this.#createCollection(request, rate, now);
    if (request.removedCollection !== undefined) {
      const digest = { prompt: 0, answer: collectionDigest(request.removedCollection) };
      return this.#admitted('removes-collection', request, digest, rate, now);
    }
    if (request.reportsUsage) return this.#admitted('reports-usage', request, NO_TOKENS, rate, now);
    if (request.readsResponse) return this.#admitted('reads-response', request, NO_TOKENS, rate, now);
    return rate === undefined ? ADMITTED : { kind: 'admitted', reservation: undefined, rate };
  }

  #spend(
    request: AdmissionRequest,
    rate: RateState | undefined,
    now: number | undefined,
  ): LimitDecision | Promise<LimitDecision> {
    const { monthlyTokens } = request;
    const reserved = reservationAmount(request, this.#parts);
    const moment = this.#moment(request, now);
    const { minute, offset } = moment;
    const { id, counter } = this.#ids.issue(minute, monthlyTokens === undefined ? 'usage' : 'budget', offset, reserved);
    const { tenantId: tenant, keyId: key = '', userId: user = '' } = request;
    const opened = { counter, tenant, key, user, prompt: reserved.prompt, minute, offset };
    if (monthlyTokens === undefined) {
      this.#opened(opened);
      return { kind: 'admitted', reservation: id, rate };
    }
    const { period, periodEndsMs } = moment;
    const reservation = {
      tenant,
      period,
      periodEndsMs,
      quota: monthlyTokens,
      amount: reserved.prompt + reserved.answer,
      counter,
    };
    const outcome = this.#budgets.reserve(reservation, now);
    if (outcome instanceof Promise)
      return outcome.then((granted) => this.#spent(granted, opened, id, reservation, rate));
    return this.#spent(outcome, opened, id, reservation, rate);
  }

  #spent(
    granted: boolean,
    opened: AdmittedRequest,
    id: string,
    reservation: TokenReservationRequest,
    rate: RateState | undefined,
  ): LimitDecision {
    if (granted) {
      this.#opened(opened);
      this.#counts.quotaAllowed += 1;
      return { kind: 'admitted', reservation: id, rate };
    }
    this.#counts.quotaRefused += 1;
    const resetsAt = new Date(reservation.periodEndsMs).toISOString();
    const left = this.#budgets.left(reservation);
    const rest = left === undefined ? 'has fewer' : `has ${left}`;
    const detail = `This request needs up to ${reservation.amount} tokens, but the tenant's monthly quota of ${reservation.quota} ${rest} left. The quota resets at ${resetsAt}.`;
    return { kind: 'refused', code: 'insufficient_quota', detail, resetsAt, rate };
  }

  #createCollection(
    request: AdmissionRequest,
    rate: RateState | undefined,
    now: number | undefined,
  ): LimitDecision | Promise<LimitDecision> {
    const { tenantId, maxCollections } = request;
    if (maxCollections === undefined) return this.#admitted('adds-collection', request, NO_TOKENS, rate, now);
    const moment = this.#moment(request, now);
    const { id, counter } = this.#ids.issue(moment.minute, 'adds-collection', moment.offset, NO_TOKENS);
    const { store, processId, reservationTtlMs } = this.#parts;
    this.#counts.statements += 1;
    return store
      .reserveCollection({ processId, counter, tenant: tenantId, max: maxCollections, ttlMs: reservationTtlMs })
      .then((reserved) => this.#created(reserved, tenantId, id, maxCollections, rate));
  }

  #created(
    reserved: boolean,
    tenant: string,
    id: string,
    maxCollections: number,
    rate: RateState | undefined,
  ): LimitDecision {
    if (reserved) {
      this.#expectsEnd(tenant);
      this.#counts.collectionsAllowed += 1;
      return { kind: 'admitted', reservation: id, rate };
    }
    this.#counts.collectionsRefused += 1;
    const detail = `The tenant already has ${maxCollections} collections, which is its limit. Delete a collection first.`;
    return { kind: 'refused', code: 'insufficient_quota', detail, resetsAt: undefined, rate };
  }

  #admitted(
    kind: ReservationKind,
    request: AdmissionRequest,
    reserved: ReservedTokens,
    rate: RateState | undefined,
    now?: number,
  ): LimitDecision {
    const { minute, offset } = this.#moment(request, now);
    this.#expectsEnd(request.tenantId);
    return { kind: 'admitted', reservation: this.#ids.issue(minute, kind, offset, reserved).id, rate };
  }

  #moment({ timezone }: AdmissionRequest, now?: number): Moment {
    return this.#calendar.at(timezone ?? UTC, this.#nowMs(now));
  }

  #nowMs(now = this.#parts.monotonicMs()): number {
    return this.#clock.nowMs(now, this.#parts.now);
  }
}
