/** The live cache, as metrics. */

import type { Labelled } from './check-meter.ts';
import type { Metrics } from './metrics.ts';

export interface CacheStats {
  readonly maps: Readonly<Record<string, CacheMapStats>>;
  readonly fillsInFlight: number;
  readonly verificationsInFlight: number;
  readonly waiting: number;
}

export interface CacheMapStats {
  readonly size: number;
  /** Remembered as not existing. */
  readonly absent: number;
  readonly tombstones: number;
  readonly hits: number;
  readonly misses: number;
  /** Loads that came too late to be believed. */
  readonly refusedLandings: number;
}

export function watchCaches(metrics: Metrics, stats: () => CacheStats): void {
  const each = (read: (cache: string, map: CacheMapStats) => readonly Labelled[]): readonly Labelled[] =>
    Object.entries(stats().maps).flatMap(([cache, map]) => read(cache, map));

  metrics.gauges({ name: 'postern_cache_entries', help: 'Entries of the live cache.' }, ['cache', 'kind'], () =>
    each((cache, { size, absent, tombstones }) => [
      { labels: { cache, kind: 'present' }, value: size },
      { labels: { cache, kind: 'absent' }, value: absent },
      { labels: { cache, kind: 'tombstone' }, value: tombstones },
    ]),
  );
  metrics.counters({ name: 'postern_cache_lookups_total', help: 'Look-ups in the live cache.' }, ['cache', 'result'], () =>
    each((cache, { hits, misses }) => [
      { labels: { cache, result: 'hit' }, value: hits },
      { labels: { cache, result: 'miss' }, value: misses },
    ]),
  );
  metrics.counters(
    { name: 'postern_cache_refused_landings_total', help: 'Loads that a change had overtaken, and that were thrown away.' },
    ['cache'],
    () => each((cache, { refusedLandings }) => [{ labels: { cache }, value: refusedLandings }]),
  );
  metrics.gauges({ name: 'postern_cache_in_flight', help: 'What the live cache is busy with.' }, ['kind'], () => {
    const { fillsInFlight, verificationsInFlight, waiting } = stats();
    return [
      { labels: { kind: 'fill' }, value: fillsInFlight },
      { labels: { kind: 'verification' }, value: verificationsInFlight },
      { labels: { kind: 'waiting' }, value: waiting },
    ];
  });
}
