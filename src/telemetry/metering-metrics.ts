/** Limits and metering, as metrics. */

import type { Metrics } from './metrics.ts';

/** Numbers since the process began, but for those that say otherwise. */
export interface MeteringStats {
  readonly rateAllowed: number;
  readonly rateRefused: number;
  readonly rateWaited: number;
  readonly rateLeased: number;
  readonly rateStranded: number;
  readonly quotaAllowed: number;
  readonly quotaRefused: number;
  readonly tokensLeased: number;
  readonly tokensReserved: number;
  readonly tokensSettled: number;
  readonly tokensExpired: number;
  readonly tokensReleased: number;
  readonly reservationsExpired: number;
  readonly reservationsRenewed: number;
  readonly reservationsReleased: number;
  readonly changesDropped: number;
  readonly requestsNotNoted: number;
  readonly lostBooked: number;
  readonly collectionsAllowed: number;
  readonly collectionsRefused: number;
  readonly settled: number;
  readonly duplicates: number;
  readonly estimated: number;
  readonly unknown: number;
  readonly late: number;
  readonly dropped: number;
  /** Of the last batch. */
  readonly settlementLagMs: number;
  /** Now. */
  readonly settlementsWaiting: number;
  readonly changesWaiting: number;
  /** Requests whose ends no proxy reports, now; 0 while ends are reported. */
  readonly unreported: number;
  readonly statements: number;
  readonly faults: number;
  /** Now, as what follows. */
  readonly rates: {
    readonly subjects: number;
    readonly held: number;
    readonly waiting: number;
    readonly isOffline: boolean;
  };
  readonly budgets: {
    readonly budgets: number;
    readonly held: number;
    readonly reserved: number;
    readonly outstanding: number;
    readonly waiting: number;
    readonly isOffline: boolean;
  };
}

export interface AccessLogStats {
  /** Now. */
  readonly streams: number;
  readonly entries: number;
  /** Reports of requests that were still running. */
  readonly running: number;
  readonly broken: number;
  readonly unreadable: number;
  readonly failed: number;
}

const OUTCOME = ['outcome'];

export function watchMetering(metrics: Metrics, source: () => MeteringStats): void {
  const stats = oncePerScrape(source);
  const outcomes = (name: string, help: string, read: () => Readonly<Record<string, number>>): void =>
    metrics.counters({ name, help }, OUTCOME, () =>
      Object.entries(read()).map(([outcome, value]) => ({ labels: { outcome }, value })),
    );
  const counter = (name: string, help: string, read: () => number): void => metrics.counter({ name, help }, read);

  outcomes('postern_rate_limited_checks_total', 'Checks with a rate limit, by outcome.', () => {
    const { rateAllowed: allowed, rateRefused: refused } = stats();
    return { allowed, refused };
  });
  counter('postern_rate_waited_total', 'Checks that waited for a rate lease.', () => stats().rateWaited);
  counter('postern_rate_leased_total', 'Requests leased in advance.', () => stats().rateLeased);
  counter(
    'postern_rate_stranded_total',
    'Requests leased in advance and unused when their window ended.',
    () => stats().rateStranded,
  );
  outcomes('postern_quota_limited_checks_total', 'Checks with a token quota, by outcome.', () => {
    const { quotaAllowed: allowed, quotaRefused: refused } = stats();
    return { allowed, refused };
  });
  outcomes(
    'postern_quota_tokens_total',
    'Tokens leased, and tokens of reservations that were made, settled, expired or released.',
    () => {
      const {
        tokensLeased: leased,
        tokensReserved: reserved,
        tokensSettled: settled,
        tokensExpired: expired,
      } = stats();
      return { leased, reserved, settled, expired, released: stats().tokensReleased };
    },
  );
  counter(
    'postern_reservations_expired_total',
    'Reservations that expired without a settlement.',
    () => stats().reservationsExpired,
  );
  counter('postern_reservations_renewed_total', 'Renewals of token reservations.', () => stats().reservationsRenewed);
  counter(
    'postern_reservations_released_total',
    'Reservations of cancelled checks.',
    () => stats().reservationsReleased,
  );
  counter(
    'postern_reservation_changes_dropped_total',
    'Renewals and releases that were not written to the database.',
    () => stats().changesDropped,
  );
  counter(
    'postern_lost_requests_booked_total',
    'Requests of processes that died, booked with the estimate of their prompt.',
    () => stats().lostBooked,
  );
  counter(
    'postern_requests_not_noted_total',
    'Requests beyond the number that a process notes in the database while they are under way.',
    () => stats().requestsNotNoted,
  );
  outcomes('postern_collection_checks_total', 'Creations of collections under a limit, by outcome.', () => {
    const { collectionsAllowed: allowed, collectionsRefused: refused } = stats();
    return { allowed, refused };
  });
  outcomes('postern_settlements_total', 'Finished requests, by what happened to their usage.', () => {
    const { settled: booked, duplicates: duplicate, unknown, late, dropped } = stats();
    return { booked, duplicate, unknown, late, dropped };
  });
  counter('postern_settlements_estimated_total', 'Finished requests without measured usage.', () => stats().estimated);
  metrics.gauge(
    {
      name: 'postern_settlement_lag_seconds',
      help: 'Time from the end of the last booked request to its booking.',
      together: 'max',
    },
    () => stats().settlementLagMs / 1000,
  );
  metrics.gauges(
    { name: 'postern_metering_waiting', help: 'Items that wait to be written to the database.' },
    ['kind'],
    () => {
      const { rates, budgets, settlementsWaiting, changesWaiting } = stats();
      return [
        { labels: { kind: 'rate' }, value: rates.waiting },
        { labels: { kind: 'tokens' }, value: budgets.waiting },
        { labels: { kind: 'settlement' }, value: settlementsWaiting },
        { labels: { kind: 'reservation' }, value: changesWaiting },
      ];
    },
  );
  metrics.gauges(
    { name: 'postern_metering_held', help: 'Entries of limits that this process holds.' },
    ['kind'],
    () => {
      const { rates, budgets } = stats();
      return [
        { labels: { kind: 'rate_subjects' }, value: rates.subjects },
        { labels: { kind: 'requests' }, value: rates.held },
        { labels: { kind: 'budgets' }, value: budgets.budgets },
        { labels: { kind: 'tokens' }, value: budgets.held },
        { labels: { kind: 'reserved_tokens' }, value: budgets.reserved },
        { labels: { kind: 'reservations' }, value: budgets.outstanding },
      ];
    },
  );
  metrics.gauge(
    { name: 'postern_metering_alone', help: '1 while limits are enforced without the database.', together: 'max' },
    () => (stats().rates.isOffline || stats().budgets.isOffline ? 1 : 0),
  );
  metrics.gauge(
    {
      name: 'postern_metering_unreported',
      help: 'Allowed requests without a report of their end for longer than a reservation lasts; 0 while proxies report ends.',
    },
    () => stats().unreported,
  );
  counter('postern_metering_statements_total', 'Database statements sent for limits.', () => stats().statements);
  counter(
    'postern_metering_faults_total',
    'Number of times that the database became unreachable for limits.',
    () => stats().faults,
  );
}

export function watchAccessLog(metrics: Metrics, stats: () => AccessLogStats): void {
  metrics.gauge({ name: 'postern_access_log_streams', help: 'Open streams of access logs.' }, () => stats().streams);
  metrics.counter(
    { name: 'postern_access_log_entries_total', help: 'Finished requests reported by access logs.' },
    () => stats().entries,
  );
  metrics.counter(
    { name: 'postern_access_log_running_total', help: 'Access log reports of a request that was still running.' },
    () => stats().running,
  );
  metrics.counters(
    {
      name: 'postern_access_log_errors_total',
      help: 'Messages and entries that could not be read, and entries that could not be booked.',
    },
    ['kind'],
    () => [
      { labels: { kind: 'message' }, value: stats().broken },
      { labels: { kind: 'unreadable' }, value: stats().unreadable },
      { labels: { kind: 'entry' }, value: stats().failed },
    ],
  );
}

/** All metrics of one scrape are read in one turn of the loop; what they tell is gathered once for all of them. */
function oncePerScrape<T>(source: () => T): () => T {
  let gathered: { readonly value: T } | undefined;
  return () => {
    if (gathered === undefined) {
      gathered = { value: source() };
      setImmediate(() => {
        gathered = undefined;
      });
    }
    return gathered.value;
  };
}
