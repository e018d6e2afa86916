/** Metrics of the change feed. */

import type { Log } from './log.ts';
import { counter, gauge, histogram } from './metric-definition.ts';
import type { Metrics } from './metrics.ts';

export const FEED_METRICS = {
  postern_database_down: gauge([], '1 while the database does not answer.', {
    together: 'max',
    explanation: 'From the first unanswered read of the change feed until the database answers again.',
  }),
  postern_feed_age_seconds: gauge([], 'Time since the change feed was last read.', {
    together: 'max',
    explanation: 'Alert on it long before `cache.max-staleness`.',
  }),
  postern_feed_lag_seconds: histogram('Age of the oldest change of a batch when the batch was applied.'),
  postern_feed_polls_total: counter([], 'Successful reads of the change feed.'),
  postern_feed_errors_total: counter([], 'Failed reads of the change feed.'),
  postern_feed_flushes_total: counter([], 'Number of times that all caches were flushed.'),
  postern_feed_unknown_flushes_total: counter(
    [],
    'Cache flushes because a newer replica wrote a kind of change that this version does not know.',
    {
      explanation:
        'The log names each kind once. Each flush is safe and costs a refill of the cache. Upgrade this server.',
    },
  ),
} as const;

/** Returns the listeners of the change feed's events. */
export function feedReports(log: Log, metrics: Metrics) {
  const lag = metrics.histogram('postern_feed_lag_seconds');
  const counts = { polls: 0, errors: 0, flushes: 0, unknown: 0 };
  let isDown = false;
  metrics.show('postern_database_down', () => (isDown ? 1 : 0));
  metrics.show('postern_feed_polls_total', () => counts.polls);
  metrics.show('postern_feed_errors_total', () => counts.errors);
  metrics.show('postern_feed_flushes_total', () => counts.flushes);
  metrics.show('postern_feed_unknown_flushes_total', () => counts.unknown);
  return {
    onError: (err: Error): void => {
      counts.errors++;
      isDown = true;
      log.warn({ err }, 'the change feed could not be read');
    },
    /** @param lagMs the age of the oldest change that was just applied; 0 without changes */
    onPoll: (lagMs: number): void => {
      counts.polls++;
      isDown = false;
      if (lagMs > 0) {
        lag.observe(lagMs);
      }
    },
    onFlush: (reason: string): void => {
      counts.flushes++;
      // onUnknownKind reports each kind once, because a newer replica may write many such changes.
      if (reason === 'unknown_kind') {
        counts.unknown++;
        return;
      }
      log.warn({ reason }, 'the change feed lost its position; all caches are flushed');
    },
    /** Called once for each kind of change that this program does not know. */
    onUnknownKind: (kind: string): void => {
      log.warn(
        { kind },
        'the change feed has a kind of change that this version does not know: each such change flushes the caches. Upgrade this server',
      );
    },
  };
}

/** @param ageMs milliseconds since the last successful poll of the feed */
export function watchFeed(metrics: Metrics, ageMs: () => number): void {
  metrics.show('postern_feed_age_seconds', () => ageMs() / 1000);
}
