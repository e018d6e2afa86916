/** The live cache, as metrics. */

import type { Labelled } from './check-meter.ts';
import type { Metrics } from './metrics.ts';

export interface CacheStats {
  readonly maps: Readonly<Record<string, CacheMapStats>>;
  readonly fillsInFlight: number;
  readonly verificationsInFlight: number;
  readonly waiting: number;
  /** By class of what is loaded. */
  readonly loads: Readonly<Record<string, CacheLoadStats>>;
  /** Checks that were answered with a fault because too many waited, by class of their credential. */
  readonly rejectedResolutions: { readonly known: number; readonly unseen: number };
  /** Estimated memory of the compiled rules of tenants and of the global policies. */
  readonly rulesBytes: number;
}

export interface CacheLoadStats {
  readonly inFlight: number;
  readonly waiting: number;
  /** Because too many of the class were waiting. */
  readonly rejected: number;
  /** Never begun, because no check waited for them any longer. */
  readonly abandoned: number;
}

export interface CacheMapStats {
  readonly size: number;
  /** NegativeCache as not existing. */
  readonly absent: number;
  readonly tombstones: number;
  readonly hits: number;
  readonly misses: number;
  /** Loads that came too late to be believed. */
  readonly rejectedFills: number;
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
  metrics.counters(
    { name: 'postern_cache_lookups_total', help: 'Look-ups in the live cache.' },
    ['cache', 'result'],
    () =>
      each((cache, { hits, misses }) => [
        { labels: { cache, result: 'hit' }, value: hits },
        { labels: { cache, result: 'miss' }, value: misses },
      ]),
  );
  metrics.counters(
    {
      name: 'postern_cache_refused_landings_total',
      help: 'Loads that were discarded because the data changed while they ran.',
    },
    ['cache'],
    () => each((cache, { rejectedFills }) => [{ labels: { cache }, value: rejectedFills }]),
  );
  metrics.gauges(
    { name: 'postern_cache_in_flight', help: 'Work that the live cache has in progress.' },
    ['kind'],
    () => {
      const { fillsInFlight, verificationsInFlight, waiting } = stats();
      return [
        { labels: { kind: 'fill' }, value: fillsInFlight },
        { labels: { kind: 'verification' }, value: verificationsInFlight },
        { labels: { kind: 'waiting' }, value: waiting },
      ];
    },
  );
  watchLoads(metrics, stats);
}

function watchLoads(metrics: Metrics, stats: () => CacheStats): void {
  const each = (read: (name: string, loads: CacheLoadStats) => readonly Labelled[]): readonly Labelled[] =>
    Object.entries(stats().loads).flatMap(([name, loads]) => read(name, loads));

  metrics.gauges(
    { name: 'postern_cache_loads', help: 'Loads of the credential cache that are running or waiting.' },
    ['class', 'state'],
    () =>
      each((name, { inFlight, waiting }) => [
        { labels: { class: name, state: 'running' }, value: inFlight },
        { labels: { class: name, state: 'waiting' }, value: waiting },
      ]),
  );
  metrics.counters(
    {
      name: 'postern_cache_rejected_loads_total',
      help: 'Loads of the credential cache that were rejected before they started.',
    },
    ['class', 'reason'],
    () =>
      each((name, { rejected, abandoned }) => [
        { labels: { class: name, reason: 'too_many_wait' }, value: rejected },
        { labels: { class: name, reason: 'no_longer_awaited' }, value: abandoned },
      ]),
  );
  metrics.counters(
    {
      name: 'postern_cache_rejected_resolutions_total',
      help: 'Requests answered with a fault because too many requests waited for the cache.',
    },
    ['class'],
    () => {
      const { known, unseen } = stats().rejectedResolutions;
      return [
        { labels: { class: 'known' }, value: known },
        { labels: { class: 'unseen' }, value: unseen },
      ];
    },
  );
  metrics.gauge(
    { name: 'postern_cache_rules_bytes', help: 'Estimated memory of compiled roles and policies.' },
    () => stats().rulesBytes,
  );
}
