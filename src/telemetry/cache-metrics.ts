/** Metrics of the credential cache. */

import { type Metrics, rowsByGroup } from './metrics.ts';

export interface CacheStats {
  readonly maps: Readonly<Record<string, CacheMapStats>>;
  readonly fillsInFlight: number;
  readonly verificationsInFlight: number;
  readonly waiting: number;
  /** By class of the loaded entries. */
  readonly loads: Readonly<Record<string, CacheLoadStats>>;
  /** Checks that were answered with a fault because too many checks waited, by class of their credential. */
  readonly rejectedResolutions: { readonly known: number; readonly unseen: number };
  /** Estimated memory of the compiled rules of tenants and of the global policies. */
  readonly rulesBytes: number;
}

export interface CacheLoadStats {
  readonly inFlight: number;
  readonly waiting: number;
  /** Loads that were rejected because too many of their class waited. */
  readonly rejected: number;
  /** Loads that did not start because no check waited for them any longer. */
  readonly abandoned: number;
}

export interface CacheMapStats {
  readonly size: number;
  /** Entries that are known not to exist. */
  readonly absent: number;
  readonly tombstones: number;
  readonly hits: number;
  readonly misses: number;
  /** Loads that were discarded because their data had changed. */
  readonly rejectedFills: number;
}

export function watchCaches(metrics: Metrics, stats: () => CacheStats): void {
  metrics.show('postern_cache_entries', () =>
    rowsByGroup(stats().maps, ({ size, absent, tombstones }) => ({ present: size, absent, tombstone: tombstones })),
  );
  metrics.show('postern_cache_lookups_total', () =>
    rowsByGroup(stats().maps, ({ hits, misses }) => ({ hit: hits, miss: misses })),
  );
  metrics.show('postern_cache_refused_landings_total', () =>
    Object.entries(stats().maps).map(([cache, { rejectedFills }]) => [cache, rejectedFills]),
  );
  metrics.show('postern_cache_in_flight', () => {
    const { fillsInFlight: fill, verificationsInFlight: verification, waiting } = stats();
    return Object.entries({ fill, verification, waiting });
  });
  metrics.show('postern_cache_loads', () =>
    rowsByGroup(stats().loads, ({ inFlight, waiting }) => ({ running: inFlight, waiting })),
  );
  metrics.show('postern_cache_rejected_loads_total', () =>
    rowsByGroup(stats().loads, ({ rejected, abandoned }) => ({
      too_many_wait: rejected,
      no_longer_awaited: abandoned,
    })),
  );
  metrics.show('postern_cache_rejected_resolutions_total', () => Object.entries(stats().rejectedResolutions));
  metrics.show('postern_cache_rules_bytes', () => stats().rulesBytes);
}
