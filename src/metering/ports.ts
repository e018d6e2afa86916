/** The interface of the store that all processes share. Implemented in `store`, and in memory by tests. */

import type { Price } from '../decision/prices.ts';
import type { BudgetUnit } from '../domain/records.ts';

/** A request for a lease of one subject's window. A statement carries many. */
export interface RateLeaseRequest {
  /** `tenant:<id>` or `key:<id>` */
  readonly subject: string;
  /** The window's number: milliseconds since the epoch, divided by the window's length, rounded down. */
  readonly window: number;
  /** Requests per window. */
  readonly limit: number;
  /** The number of requests to lease. The store may grant fewer. */
  readonly requested: number;
  /**
   * Requests that the store counts before it grants, regardless of the limit. Positive: admitted without a lease while
   * the store was unreachable. Negative: leased and returned.
   */
  readonly report: number;
}

export interface RateGrant {
  readonly granted: number;
  /** Requests of the window granted to all processes, including this grant. */
  readonly total: number;
}

export interface RateLeaseResult {
  /** One for each request, in order. */
  readonly grants: readonly RateGrant[];
  /** The store's clock while the statement ran, milliseconds since the epoch. */
  readonly nowMs: number;
  /** Processes that share the limits now, including this one. */
  readonly processes: number;
}

/**
 * Invariant: for one subject and window, the sum of all grants never exceeds the limit of any request that was granted
 * something. Rejects if the store is unreachable. If the answer of a statement is lost, its grants remain.
 */
export interface RateStore {
  /** Also records that the process lives; without requests, it does only that. */
  lease(processId: string, requests: readonly RateLeaseRequest[]): Promise<RateLeaseResult>;
}

/** A request for a hold on the amount of one period: of a tenant's monthly tokens, or of a budget. */
export interface HoldRequest {
  readonly tenant: string;
  /** The calendar month in the tenant's time zone: `2026-11`. For a budget: `Charge.period`. */
  readonly period: string;
  /** In the unit of the budget, as all amounts here. */
  readonly quota: number;
  /** The number of tokens to hold in addition. The store may grant fewer. */
  readonly requested: number;
  /**
   * The sum of all changes of this hold so far, except grants. The store applies them before it grants, regardless of
   * the quota: tokens reserved without a hold are added, tokens spent or returned are subtracted. Because it is a sum,
   * a repeated statement applies no change twice.
   */
  readonly changes: number;
  /**
   * The value of `changes` in the last request that was answered. The store uses it if it has no hold of the process.
   */
  readonly confirmed: number;
}

export interface HoldGrant {
  readonly granted: number;
  /** Tokens that this process holds now, including this grant. */
  readonly held: number;
  /** Tokens that all processes have spent and hold. */
  readonly used: number;
  readonly spent: number;
}

/** Reservations of this process that another process settled. */
interface RemoteSettlement {
  readonly id: number;
  readonly counters: readonly number[];
  /** The tokens that each spent, in the same order. */
  readonly totals: readonly number[];
  /** The cost of each, in the same order. */
  readonly costs: readonly number[];
}

/** Reservations of this process whose requests another process reported as running. */
interface RemoteRenewal {
  readonly counters: readonly number[];
  /** Milliseconds since the store received the report. */
  readonly ageMs: number;
}

export interface HoldResult {
  /** One for each request, in order. */
  readonly grants: readonly HoldGrant[];
  /** Repeated until they are acknowledged. */
  readonly settlements: readonly RemoteSettlement[];
  /** Reported once. If the answer is lost, so are they. */
  readonly renewals: readonly RemoteRenewal[];
  readonly processes: number;
}

export interface HoldBatch {
  readonly processId: string;
  /** Grows with each statement. The store rejects a statement that arrives after a later one. */
  readonly sequence: number;
  readonly requests: readonly HoldRequest[];
  /** Ids of settlements that the process has received. The store does not repeat them. */
  readonly acked: readonly number[];
}

/**
 * Invariant: at every grant, all spent and held tokens together are at most the quota of that request. Rejects if the
 * store is unreachable. If the answer of a statement is lost, the next answer's `held` shows its effect.
 */
export interface TokenStore {
  hold(batch: HoldBatch): Promise<HoldResult>;
}

/**
 * An amount that the end of a request is booked to, besides the tenant's month: of a budget, as it was when the request
 * was admitted.
 */
export interface Charge {
  readonly unit: BudgetUnit;
  /**
   * The budget's id, `/` and the caller whose amount it is (absent for a shared budget), a space, the period, `#` and
   * the budget's epoch: `bud_…/key_… 2026-11#0`.
   */
  readonly period: string;
}

/** The end of one request, ready to be booked. */
export interface Settlement {
  /** The process that issued the reservation, and the reservation's number. */
  readonly processId: string;
  readonly counter: number;
  /** Whether the issuer holds tokens for it, so that the store must report the settlement to the issuer. */
  readonly held: boolean;
  readonly tenant: string;
  readonly period: string;
  /** In the tenant's time zone: `2026-11-30`. */
  readonly day: string;
  /** Empty = none; the same applies to `key` and `user`. */
  readonly model: string;
  readonly key: string;
  readonly user: string;
  readonly prompt: number;
  readonly completion: number;
  readonly cached: number;
  /** Tokens of the prompt that were written to a cache. */
  readonly cacheWrite: number;
  readonly total: number;
  /** In 10^-9 of the currency, by the price when the request was admitted. */
  readonly cost: number;
  /** The version of the price list; 0 = the model had no price. */
  readonly priceVersion: number;
  /**
   * The price when the request was admitted, if `response` is set and `books` is true: a correction of the booking uses
   * it. Undefined = the model had none.
   */
  readonly price: Price | undefined;
  /** They count also if `books` is false. */
  readonly charges: readonly Charge[];
  readonly estimated: boolean;
  /** False if another source counts the tenant's usage, and for requests that spend no tokens. */
  readonly books: boolean;
  /** 1: created a collection, -1: removed one, 0: failed to; undefined: unrelated to collections. */
  readonly collections: -1 | 0 | 1 | undefined;
  /** For a removal, the digest of the collection's name. */
  readonly collection: number | undefined;
  /**
   * The id of a response that continues after its answer, whose booking may be corrected once. If `books` is false, the
   * id of a complete response that has this usage.
   */
  readonly response: string | undefined;
}

export interface SettleResult {
  /** The number of settlements that were not booked before. */
  readonly booked: number;
  /** Processes of the batch that the store does not know. It did nothing for their settlements. */
  readonly unknownProcesses: readonly string[];
}

/**
 * Books each reservation once, regardless of how often and where its end is reported. Books all of a batch, or nothing.
 */
export interface SettlementStore {
  /**
   * @param settler the process that sends the batch. The store knows it afterwards, and reports no settlement of its
   *   own to it.
   */
  settle(settler: string, settlements: readonly Settlement[]): Promise<SettleResult>;
}

export interface CollectionReservationRequest {
  readonly processId: string;
  /** The reservation's number. */
  readonly counter: number;
  readonly tenant: string;
  readonly max: number;
  /** The reservation expires after this time if no process settles it. */
  readonly ttlMs: number;
}

/**
 * Invariant: at every reservation, counted collections and creations in progress together are at most the limit of that
 * request.
 */
export interface CollectionStore {
  /** Returns false if the limit is reached. */
  reserveCollection(request: CollectionReservationRequest): Promise<boolean>;
}

/** The report that a request is still running, or that its check was cancelled. */
export interface ReservationChange {
  /**
   * `renew-tokens`: the store passes it to the issuer in the answer of the issuer's next statement. `renew-collection`,
   * `release-collection`: the store itself keeps the reservation.
   */
  readonly kind: 'renew-tokens' | 'renew-collection' | 'release-collection';
  /** The process that issued the reservation. */
  readonly processId: string;
  readonly counter: number;
}

/** Changes of reservations that do not exist, or that have expired, have no effect. */
export interface ReservationStore {
  /** @param ttlMs the lifetime of a renewed collection reservation, counted from now */
  changeReservations(changes: readonly ReservationChange[], ttlMs: number): Promise<void>;
}

/** A request that a process admitted and whose end it does not know, with the estimate of its prompt and its cost. */
export type OpenRequest = Pick<
  Settlement,
  'counter' | 'tenant' | 'period' | 'day' | 'key' | 'user' | 'prompt' | 'cost' | 'priceVersion' | 'charges'
>;

export interface OpenRequestNote {
  readonly processId: string;
  /** The number of this note. The same note may be sent twice. */
  readonly note: number;
  readonly requests: readonly OpenRequest[];
  /** Numbers of earlier notes that the store may delete. */
  readonly over: readonly number[];
}

export interface LostRequestOptions {
  /** A process is lost if the store has not seen it for this time. */
  readonly holdTtlMs: number;
  /** A request that was renewed within this time is still running. */
  readonly reservationTtlMs: number;
  /** The store remembers settled reservations for this time. */
  readonly settlementKeepMs: number;
}

export interface LostBooking {
  /** The number of requests booked with their prompt's estimate. */
  readonly booked: number;
  /** Whether there may be another note. */
  readonly more: boolean;
}

/** Books the noted requests of lost processes, each once, unless its end is known or it is still running. */
export interface OpenRequestStore {
  noteRequests(note: OpenRequestNote): Promise<void>;
  bookLost(options: LostRequestOptions): Promise<LostBooking>;
}

export interface TidyOptions extends Omit<LostRequestOptions, 'reservationTtlMs'> {
  readonly windowMs: number;
  /** The largest number of rows of each kind to delete. */
  readonly batch: number;
}

export interface TidyResult {
  /** Holds of lost processes. */
  readonly holds: number;
  /** Deleted rows of all kinds. */
  readonly removed: number;
  /** Whether there may be more rows of some kind. */
  readonly more: boolean;
}

interface MeteringUpkeep {
  tidy(options: TidyOptions): Promise<TidyResult>;
}

export interface ReportStore {
  /** Reports whether any process settled a reservation of the process within that time. */
  settledLately(processId: string, withinMs: number): Promise<boolean>;
}

export interface MeteringStore
  extends RateStore,
    TokenStore,
    SettlementStore,
    CollectionStore,
    ReservationStore,
    OpenRequestStore,
    ReportStore,
    MeteringUpkeep {}

/** The names of numbers to read. */
export interface ReadingRequest {
  readonly windowMs: number;
  /** Subjects of limits per minute, see `RateLeaseRequest`. */
  readonly subjects: readonly string[];
  /** Budgets, see `HoldRequest`. */
  readonly budgets: readonly { readonly tenant: string; readonly period: string }[];
  /** Tenants whose collections count. */
  readonly collections: readonly string[];
}

/** The numbers of each list, in its order. */
export interface ReadingResult {
  /** Granted in the current window. */
  readonly granted: readonly number[];
  readonly spent: readonly number[];
  readonly held: readonly number[];
  /** Counted and reserved. */
  readonly collections: readonly number[];
  /** The time until the current window ends. */
  readonly windowLeftMs: number;
}

export interface ReadingStore {
  /** Rejects if the store is unreachable. */
  read(request: ReadingRequest): Promise<ReadingResult>;
}
