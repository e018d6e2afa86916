/** What metering did since the process began: plain numbers, for whoever shows them. */

export interface MeteringCounts {
  /** Requests that a rate limit let through, and that one refused. */
  rateAllowed: number;
  rateRefused: number;
  /** Checks that waited for a rate lease. */
  rateWaited: number;
  /** Requests that the store granted ahead of need; and of these, what was left of windows that ended. */
  rateLeased: number;
  rateStranded: number;
  /** Requests with a token quota that were let through, and refused. */
  quotaAllowed: number;
  quotaRefused: number;
  /** Tokens that the store granted. */
  tokensLeased: number;
  /** Tokens of reservations: made, ended by a settlement, by time, and by a cancelled check. */
  tokensReserved: number;
  tokensSettled: number;
  tokensExpired: number;
  tokensReleased: number;
  reservationsExpired: number;
  /** Renewals of reservations of tokens, and cancelled checks that released a reservation. */
  reservationsRenewed: number;
  reservationsReleased: number;
  /** Renewals and releases that did not reach the store. */
  changesDropped: number;
  /** Requests under way that exceed the bound of noted requests, so the store has no note of them. */
  requestsNotNoted: number;
  /** Requests of processes that died which this process booked. */
  lostBooked: number;
  /** Creations of collections let through, and refused. */
  collectionsAllowed: number;
  collectionsRefused: number;
  /** Requests booked; and those that the batch or another process had booked before. */
  settled: number;
  duplicates: number;
  /** Of the ends told of, those that were estimated because nobody said what was spent. */
  estimated: number;
  /** Ends that settle nothing: without an id of ours, or of a request too long ago. */
  unknown: number;
  late: number;
  /** Ends that could not be booked: the queue was full, or the store refused them. */
  dropped: number;
  /** From hearing of an end to its being booked, in the last batch. */
  settlementLagMs: number;
  /** Statements sent to the store. */
  statements: number;
  /** How often the store went away. */
  faults: number;
}

export function newCounts(): MeteringCounts {
  return {
    rateAllowed: 0,
    rateRefused: 0,
    rateWaited: 0,
    rateLeased: 0,
    rateStranded: 0,
    quotaAllowed: 0,
    quotaRefused: 0,
    tokensLeased: 0,
    tokensReserved: 0,
    tokensSettled: 0,
    tokensExpired: 0,
    tokensReleased: 0,
    reservationsExpired: 0,
    reservationsRenewed: 0,
    reservationsReleased: 0,
    changesDropped: 0,
    requestsNotNoted: 0,
    lostBooked: 0,
    collectionsAllowed: 0,
    collectionsRefused: 0,
    settled: 0,
    duplicates: 0,
    estimated: 0,
    unknown: 0,
    late: 0,
    dropped: 0,
    settlementLagMs: 0,
    statements: 0,
    faults: 0,
  };
}
