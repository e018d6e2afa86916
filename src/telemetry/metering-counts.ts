/** The counters of metering since the process began, as plain numbers. */
export type MeteringCounts = ReturnType<typeof newCounts>;

export function newCounts() {
  return {
    /** Requests that the rate limits admitted, and rejected. */
    rateAllowed: 0,
    rateRefused: 0,
    /** Checks that waited for a rate lease. */
    rateWaited: 0,
    /** Requests that the store leased ahead of need, and the unused ones of windows that ended. */
    rateLeased: 0,
    rateStranded: 0,
    /** Requests that were admitted without a lease while the store was unreachable. */
    rateUnleased: 0,
    /** Requests with a token quota that were admitted, and rejected. */
    quotaAllowed: 0,
    quotaRefused: 0,
    /** Tokens that the store granted. */
    tokensLeased: 0,
    /** Tokens of reservations: made, and ended by a settlement, by expiry, and by a cancelled check. */
    tokensReserved: 0,
    tokensSettled: 0,
    tokensExpired: 0,
    tokensReleased: 0,
    reservationsExpired: 0,
    /** Renewals of token reservations, and cancelled checks that released a reservation. */
    reservationsRenewed: 0,
    reservationsReleased: 0,
    /** Renewals and releases that did not reach the store. */
    changesDropped: 0,
    /** Requests in progress beyond the bound of noted requests. The store has no note of them. */
    requestsNotNoted: 0,
    /** Requests of lost processes that this process booked. */
    lostBooked: 0,
    /** Creations of collections that were admitted, and rejected. */
    collectionsAllowed: 0,
    collectionsRefused: 0,
    /** Requests that were booked, and requests that the same batch or another process had booked before. */
    settled: 0,
    duplicates: 0,
    /** Reported ends without usage, whose usage the server estimated. */
    estimated: 0,
    /** Ends that settle nothing: without a valid reservation id, or of a request too long ago. */
    unknown: 0,
    late: 0,
    /** Ends whose text of charges is malformed. They are booked without their budgets. */
    unknownCharges: 0,
    /** Ends that were not booked because the queue was full, or because the store rejected them. */
    dropped: 0,
    /** Time from the report of an end to its booking, in the last batch. */
    settlementLagMs: 0,
    /** Statements sent to the store. */
    statements: 0,
    /** Outages of the store. */
    faults: 0,
  };
}
