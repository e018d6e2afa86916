/** What metering needs from the store that all processes share. Implemented in `store`, and in memory by tests. */

/** One wish of one batch. */
export interface RateLeaseRequest {
  /** `tenant:<id>` or `key:<id>` */
  readonly subject: string;
  /** The window's number: milliseconds since the epoch, divided by its length, rounded down. */
  readonly window: number;
  /** Requests per window. */
  readonly limit: number;
  /** Requests wished for; fewer may be granted. */
  readonly requested: number;
  /** Counted first, whatever the limit: requests admitted without a lease while the store was away; negative: leased ones given back. */
  readonly report: number;
}

export interface RateGrant {
  /** Of what was wished for. */
  readonly granted: number;
  /** Granted in the window to all processes so far, this grant included. */
  readonly total: number;
}

export interface RateLeaseResult {
  /** One for each wish, in order. */
  readonly grants: readonly RateGrant[];
  /** The store's clock while the statement ran, milliseconds since the epoch. */
  readonly nowMs: number;
  /** Processes that share the limits now, this one included. */
  readonly processes: number;
}

/**
 * Invariant: of one subject and window, the sum of all that is granted never passes the limit of any wish that was granted something.
 * Rejects when the store cannot be reached; what was granted by a statement whose answer is lost stays granted.
 */
export interface RateStore {
  /** Says too that the process lives; with no wishes, that alone. */
  lease(processId: string, requests: readonly RateLeaseRequest[]): Promise<RateLeaseResult>;
}

/** One wish for a share of a tenant's tokens in one period. */
export interface HoldRequest {
  readonly tenant: string;
  /** The calendar month in the tenant's time zone: `2026-11`. */
  readonly period: string;
  readonly quota: number;
  /** Tokens wished for; fewer may be granted. */
  readonly requested: number;
  /**
   * The sum of all changes of this hold so far but grants. They count first, whatever the quota: tokens reserved without a hold are
   * added, tokens spent or given back are taken off. A sum, so that a change counts once however often it is told.
   */
  readonly changes: number;
  /** The sum that was told with the last wish that was answered; it stands where the process holds nothing. */
  readonly confirmed: number;
}

export interface HoldGrant {
  /** Of what was wished for. */
  readonly granted: number;
  /** What this process holds now, this grant included. */
  readonly held: number;
  /** Tokens that all processes have spent and hold. */
  readonly used: number;
  readonly spent: number;
}

/** Reservations of the process that another process settled. */
export interface RemoteSettlement {
  readonly id: number;
  readonly counters: readonly number[];
  /** What each spent, in the same order. */
  readonly totals: readonly number[];
}

/** Reservations of the process whose requests are still running, as another process heard. */
export interface RemoteRenewal {
  readonly counters: readonly number[];
  /** Milliseconds since the store heard of it. */
  readonly ageMs: number;
}

export interface HoldResult {
  /** One for each wish, in order. */
  readonly grants: readonly HoldGrant[];
  readonly settlements: readonly RemoteSettlement[];
  /** Reported once. Those in an answer that is lost are lost with it. */
  readonly renewals: readonly RemoteRenewal[];
  readonly processes: number;
}

export interface HoldBatch {
  readonly processId: string;
  /** Larger each time: a statement that reaches the store after a later one does nothing, and is rejected. */
  readonly sequence: number;
  readonly requests: readonly HoldRequest[];
  /** News that were heard; they are not told again. */
  readonly acked: readonly number[];
}

/**
 * Invariant: at every grant, what is spent and what is held by all together is at most the quota of that wish.
 * Rejects when the store cannot be reached; what a statement did whose answer is lost shows in the next answer's `held`.
 */
export interface TokenStore {
  hold(words: HoldBatch): Promise<HoldResult>;
}

/** The end of one request, ready to be booked. */
export interface Settlement {
  /** Who issued its reservation, and under which number. */
  readonly processId: string;
  readonly counter: number;
  /** Whether the issuer holds tokens for it, and so must hear of its end. */
  readonly held: boolean;
  readonly tenant: string;
  readonly period: string;
  /** In the tenant's time zone: `2026-11-30`. */
  readonly day: string;
  /** Empty = none. */
  readonly model: string;
  readonly key: string;
  readonly user: string;
  readonly prompt: number;
  readonly completion: number;
  readonly cached: number;
  readonly total: number;
  readonly estimated: boolean;
  /** False where another source counts the tenant's usage, and for requests that spend no tokens. */
  readonly books: boolean;
  /** 1: it made a collection, -1: it removed one, 0: it tried; undefined: it had nothing to do with any. */
  readonly collections: -1 | 0 | 1 | undefined;
  /** Of a removal, the digest of the collection's name. */
  readonly collection: number | undefined;
  /**
   * The id of a response that goes on after its answer, whose booking may be corrected once. If `books` is false, the id of a complete
   * response whose usage this is.
   */
  readonly response: string | undefined;
}

export interface SettleResult {
  /** Those that were not settled before. */
  readonly booked: number;
  /** Holders of the batch that the store does not know; nothing was done for their settlements. */
  readonly unknownProcesses: readonly string[];
}

/** Books each reservation once, however often and wherever its end is told. All of a batch, or nothing. */
export interface SettlementStore {
  /** @param settler the process that heard of these ends, which the store knows from then on, and which needs no news of its own reservations */
  settle(settler: string, settlements: readonly Settlement[]): Promise<SettleResult>;
}

export interface CollectionReservationRequest {
  readonly processId: string;
  /** The reservation's number. */
  readonly counter: number;
  readonly tenant: string;
  readonly max: number;
  /** After so long it no longer counts, should nobody settle it. */
  readonly ttlMs: number;
}

/** Invariant: at every reservation, collections counted and creations under way together are at most the limit of that wish. */
export interface CollectionStore {
  /** False when there are as many already. */
  reserveCollection(request: CollectionReservationRequest): Promise<boolean>;
}

/** A request is still running, or its check was cancelled. */
export interface ReservationChange {
  /**
   * `renew-tokens`: reported to the process with its next statement. `renew-collection`, `release-collection`: the store itself keeps
   * the reservation.
   */
  readonly kind: 'renew-tokens' | 'renew-collection' | 'release-collection';
  /** The process that made the reservation. */
  readonly processId: string;
  readonly counter: number;
}

/** Changes of reservations that do not exist, or that have expired, do nothing. */
export interface ReservationStore {
  /** @param ttlMs what the reservation of a collection lives from now, if it is renewed */
  changeReservations(changes: readonly ReservationChange[], ttlMs: number): Promise<void>;
}

/** A request that a process admitted and whose end it does not know. */
export interface OpenRequest {
  readonly counter: number;
  readonly tenant: string;
  readonly period: string;
  /** In the tenant's time zone: `2026-11-30`. */
  readonly day: string;
  /** Empty = none. */
  readonly key: string;
  readonly user: string;
  /** The prompt's estimate. */
  readonly prompt: number;
}

export interface OpenRequestNote {
  readonly processId: string;
  /** The number of this note. The same words may come twice. */
  readonly note: number;
  readonly requests: readonly OpenRequest[];
  /** Earlier notes that can go. */
  readonly over: readonly number[];
}

export interface LostRequestOptions {
  /** A process not seen for so long is gone. */
  readonly holdTtlMs: number;
  /** A request that was renewed within this time is still running. */
  readonly reservationTtlMs: number;
  /** How long it is remembered what was settled. */
  readonly settlementKeepMs: number;
}

export interface LostBooking {
  /** Requests that were booked with their prompt's estimate. */
  readonly booked: number;
  /** There may be another note. */
  readonly more: boolean;
}

/** Books the noted requests of processes that are gone, each once, except if its end is known or it is still running. */
export interface OpenRequestStore {
  noteRequests(notes: OpenRequestNote): Promise<void>;
  /** Books one note. */
  bookLost(options: LostRequestOptions): Promise<LostBooking>;
}

export interface TidyOptions {
  readonly windowMs: number;
  /** A process not seen for so long is gone, and what it held is free. */
  readonly holdTtlMs: number;
  /** How long it is remembered what was settled. */
  readonly settlementKeepMs: number;
  /** Rows of each kind at most. */
  readonly batch: number;
}

export interface TidyResult {
  /** Holds of processes that are gone. */
  readonly holds: number;
  /** Rows of all kinds that were removed. */
  readonly removed: number;
  /** Of some kind there may be more. */
  readonly more: boolean;
}

export interface MeteringUpkeep {
  tidy(options: TidyOptions): Promise<TidyResult>;
}

export interface ReportStore {
  /** Whether any process settled a reservation of the process within that time. */
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
