/** Metrics of limits and metering. */

import type { MeteringCounts } from './metering-counts.ts';
import { metricsOf } from './metric-definition.ts';
import type { Metrics } from './metrics.ts';

const { counter, gauge } = metricsOf('limits');

export const METERING_METRICS = {
  postern_rate_limited_checks_total: counter(['outcome'], 'Checks with a rate limit, by outcome.'),
  postern_rate_waited_total: counter([], 'Checks that waited for a rate lease.'),
  postern_rate_leased_total: counter([], 'Requests leased in advance.'),
  postern_rate_stranded_total: counter([], 'Requests leased in advance and unused when their window ended.'),
  postern_quota_limited_checks_total: counter(['outcome'], 'Checks with a token quota, by outcome.'),
  postern_quota_tokens_total: counter(
    ['outcome'],
    'Tokens leased, and tokens of reservations that were made, settled, expired or released.',
  ),
  postern_reservations_expired_total: counter([], 'Reservations that expired without a settlement.'),
  postern_reservations_renewed_total: counter([], 'Renewals of token reservations.', {
    explanation: 'Envoy renews the reservation of a request that still runs.',
  }),
  postern_reservations_released_total: counter([], 'Reservations of cancelled checks.'),
  postern_reservation_changes_dropped_total: counter(
    [],
    'Renewals and releases that were not written to the database.',
    { explanation: 'These reservations expire.' },
  ),
  postern_lost_requests_booked_total: counter(
    [],
    'Requests of processes that died, booked with the estimate of their prompt.',
    { explanation: 'See [A process that dies](limits.md#the-end-of-a-request).' },
  ),
  postern_requests_not_noted_total: counter(
    [],
    'Requests beyond the number that a process notes in the database while they are under way.',
    { explanation: 'The number is 100,000. If the process dies, the others are not booked.' },
  ),
  postern_collection_checks_total: counter(['outcome'], 'Creations of collections under a limit, by outcome.'),
  postern_settlements_total: counter(['outcome'], 'Finished requests, by what happened to their usage.', {
    explanation: '`booked`, `duplicate` (reported twice), `unknown`, `late` or `dropped`.',
  }),
  postern_settlements_estimated_total: counter([], 'Finished requests without measured usage.'),
  postern_settlements_unknown_charges_total: counter(
    [],
    'Finished requests whose budgets the access log did not return correctly. They are booked without their budgets.',
  ),
  postern_settlement_lag_seconds: gauge([], 'Time from the end of the last booked request to its booking.', {
    together: 'max',
  }),
  postern_access_log_streams: gauge([], 'Open streams of access logs.', {
    explanation: 'If there is no stream while requests pass, nothing is metered.',
  }),
  postern_access_log_entries_total: counter([], 'Finished requests reported by access logs.'),
  postern_access_log_running_total: counter([], 'Access log reports of a request that was still running.'),
  postern_access_log_errors_total: counter(
    ['kind'],
    'Messages and entries that could not be read, and entries that could not be booked.',
    {
      explanation:
        '`message`: malformed messages, each of which ended its stream. `unreadable`: skipped entries. `entry`: entries that could not be booked.',
    },
  ),
  postern_metering_waiting: gauge(['kind'], 'Items that wait to be written to the database.', {
    explanation:
      '`rate` and `tokens`: checks. `settlement`: ends of requests. `reservation`: renewals and releases of reservations.',
  }),
  postern_metering_held: gauge(['kind'], 'Entries of limits that this process holds.', {
    explanation:
      'Of rate limits: `rate_subjects` and leased `requests`. Of quotas: `budgets`, their `tokens`, their `reserved_tokens`, and `reservations`.',
  }),
  postern_metering_statements_total: counter([], 'Database statements sent for limits.'),
  postern_metering_faults_total: counter([], 'Number of times that the database became unreachable for limits.'),
  postern_metering_alone: gauge([], '1 while limits are enforced without the database.', {
    together: 'max',
  }),
  postern_metering_unreported: gauge(
    [],
    'Allowed requests without a report of their end for longer than a reservation lasts; 0 while proxies report ends.',
    {
      explanation:
        "A reservation lasts for `limits.reservation-ttl` (default: 30 s). Shown if there are at least 10 such requests and no end of the process's requests has been reported since. `/readyz` shows it as a warning. Configure the proxy's access log: [Envoy](envoy.md#metering), [Istio](istio.md), [Envoy Gateway](envoy-gateway.md).",
    },
  ),
} as const;

export interface MeteringStats extends Readonly<MeteringCounts> {
  /** Current numbers, like all members of this interface. */
  readonly settlementsWaiting: number;
  readonly changesWaiting: number;
  /** The current number of requests whose ends no proxy reports. 0 while ends are reported. */
  readonly unreported: number;
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
  /** The number of open streams. */
  readonly streams: number;
  /** The ends of requests that the listener accepted. */
  readonly entries: number;
  /** Reports of requests that were still running. */
  readonly running: number;
  /** Unreadable messages; each ended its stream. */
  readonly broken: number;
  /** Unreadable entries, which were skipped. */
  readonly unreadable: number;
  /** Entries for which the listener threw. */
  readonly failed: number;
}

export function watchMetering(metrics: Metrics, source: () => MeteringStats): void {
  const stats = oncePerScrape(source);
  metrics.show('postern_rate_limited_checks_total', () => {
    const { rateAllowed: allowed, rateRefused: refused } = stats();
    return Object.entries({ allowed, refused });
  });
  metrics.show('postern_rate_waited_total', () => stats().rateWaited);
  metrics.show('postern_rate_leased_total', () => stats().rateLeased);
  metrics.show('postern_rate_stranded_total', () => stats().rateStranded);
  metrics.show('postern_quota_limited_checks_total', () => {
    const { quotaAllowed: allowed, quotaRefused: refused } = stats();
    return Object.entries({ allowed, refused });
  });
  metrics.show('postern_quota_tokens_total', () => [
    ['leased', stats().tokensLeased],
    ['reserved', stats().tokensReserved],
    ['settled', stats().tokensSettled],
    ['expired', stats().tokensExpired],
    ['released', stats().tokensReleased],
  ]);
  metrics.show('postern_reservations_expired_total', () => stats().reservationsExpired);
  metrics.show('postern_reservations_renewed_total', () => stats().reservationsRenewed);
  metrics.show('postern_reservations_released_total', () => stats().reservationsReleased);
  metrics.show('postern_reservation_changes_dropped_total', () => stats().changesDropped);
  metrics.show('postern_lost_requests_booked_total', () => stats().lostBooked);
  metrics.show('postern_requests_not_noted_total', () => stats().requestsNotNoted);
  metrics.show('postern_collection_checks_total', () => {
    const { collectionsAllowed: allowed, collectionsRefused: refused } = stats();
    return Object.entries({ allowed, refused });
  });
  metrics.show('postern_settlements_total', () => {
    const { settled: booked, duplicates: duplicate, unknown, late, dropped } = stats();
    return Object.entries({ booked, duplicate, unknown, late, dropped });
  });
  metrics.show('postern_settlements_estimated_total', () => stats().estimated);
  metrics.show('postern_settlements_unknown_charges_total', () => stats().unknownCharges);
  metrics.show('postern_settlement_lag_seconds', () => stats().settlementLagMs / 1000);
  metrics.show('postern_metering_waiting', () => {
    const { rates, budgets, settlementsWaiting: settlement, changesWaiting: reservation } = stats();
    return Object.entries({ rate: rates.waiting, tokens: budgets.waiting, settlement, reservation });
  });
  metrics.show('postern_metering_held', () => {
    const { rates, budgets } = stats();
    return [
      ['rate_subjects', rates.subjects],
      ['requests', rates.held],
      ['budgets', budgets.budgets],
      ['tokens', budgets.held],
      ['reserved_tokens', budgets.reserved],
      ['reservations', budgets.outstanding],
    ];
  });
  metrics.show('postern_metering_alone', () => (stats().rates.isOffline || stats().budgets.isOffline ? 1 : 0));
  metrics.show('postern_metering_unreported', () => stats().unreported);
  metrics.show('postern_metering_statements_total', () => stats().statements);
  metrics.show('postern_metering_faults_total', () => stats().faults);
}

export function watchAccessLog(metrics: Metrics, stats: () => AccessLogStats): void {
  metrics.show('postern_access_log_streams', () => stats().streams);
  metrics.show('postern_access_log_entries_total', () => stats().entries);
  metrics.show('postern_access_log_running_total', () => stats().running);
  metrics.show('postern_access_log_errors_total', () => {
    const { broken: message, unreadable, failed: entry } = stats();
    return Object.entries({ message, unreadable, entry });
  });
}

/** Calls `source` once for each scrape. All metrics of a scrape are read in one turn of the event loop. */
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
