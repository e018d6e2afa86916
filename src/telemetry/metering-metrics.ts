/** Metrics of limits and metering. */

import type { MeteringCounts } from './metering-counts.ts';
import type { Metrics } from './metrics.ts';

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
