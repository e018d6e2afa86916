/** Metrics of the credential cache. */

import { counter, gauge, rowsByGroup } from './metric-definition.ts';
import type { Metrics } from './metrics.ts';

export const CACHE_METRICS = {
  postern_cache_entries: gauge(['cache', 'kind'], 'Entries of the credential cache.', {
    explanation: '`present`, `absent` (known not to exist) or `tombstone`.',
  }),
  postern_cache_lookups_total: counter(['cache', 'result'], 'Lookups in the credential cache.', {
    explanation: '`hit` or `miss`.',
  }),
  postern_cache_in_flight: gauge(['kind'], 'Work that the credential cache has in progress.', {
    explanation: '`fill` (loads), `verification` (of signatures), and checks that are `waiting`.',
  }),
  postern_cache_refused_landings_total: counter(
    ['cache'],
    'Loads that were discarded because the data changed while they ran.',
  ),
  postern_cache_loads: gauge(['class', 'state'], 'Loads of the credential cache that are running or waiting.', {
    explanation:
      'Classes: `rules` (tenants, global policies), `known` (users, sessions, keys that were valid here before), `unseen` (other keys), `known_token` and `unseen_token` (signatures), `known_issuer_token` and `unseen_issuer_token` (signatures of other issuers), `admission` (users of issuers that are created or given roles). If many loads wait in `unseen` classes only, a client sends made-up credentials.',
  }),
  postern_cache_rejected_loads_total: counter(
    ['class', 'reason'],
    'Loads of the credential cache that were rejected before they started.',
    { explanation: '`too_many_wait` (a 503 each), or `no_longer_awaited` (no check waited for the load any longer).' },
  ),
  postern_cache_rejected_resolutions_total: counter(
    ['class'],
    'Requests answered with a fault because too many requests waited for the cache.',
    { explanation: 'The class of the credential is `known` or `unseen`.' },
  ),
  postern_cache_rules_bytes: gauge([], 'Estimated memory of compiled roles and policies.', {
    explanation: 'The bound is 1,280 bytes for each of `cache.credentials`, and at least 64 MiB.',
  }),
} as const;

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
