/** The telemetry of one process: its log, its metrics, the decision log and traces. */

import manifest from '../../package.json' with { type: 'json' };
import { type CacheStats, watchCaches } from './cache-metrics.ts';
import { CheckMeter } from './check-meter.ts';
import { checkObserver } from './check-observer.ts';
import { databaseReports } from './database-metrics.ts';
import { DecisionLog } from './decision-log.ts';
import { type DecisionTarget, sinkFor } from './decision-sinks.ts';
import { DecisionTally } from './decision-tally.ts';
import { directoryReports } from './directory-metrics.ts';
import { tlsReloads } from './grpc-metrics.ts';
import { httpRefusals, httpRequests } from './http-metrics.ts';
import { type Log, type Logging, type LogOptions, startLogging } from './log.ts';
import { Metrics } from './metrics.ts';
import { RecentDecisions } from './recent-decisions.ts';
import type { Tracing, TracingOptions } from './tracing.ts';
import { TrialDecisions } from './trial-decisions.ts';

export interface Watched {
  readonly live: () => CacheStats;
  /** Milliseconds since the last successful poll of the feed; Infinity before the first. */
  readonly feedAgeMs: () => number;
  /**
   * The database's time in milliseconds since the epoch, by which decisions are counted. Before, this machine's time
   * counts.
   */
  readonly now: () => number;
}

export type Telemetry = ReturnType<typeof createTelemetry>;

interface DecisionLogOptions {
  /** Undefined: no decision log. */
  readonly target: DecisionTarget | undefined;
  /** The log has one allow in this many. 0: none. */
  readonly allowOneIn: number;
}

export interface TelemetryOptions extends LogOptions {
  /** Default: standard output, with one allow in 1000. */
  readonly decisions?: DecisionLogOptions;
  /** Creates the recorder of traces. Default: no traces. */
  readonly tracing?: ((reports: TracingReports) => Tracing) | undefined;
}

type TracingReports = Pick<TracingOptions, 'onLost' | 'warn'>;

const DEFAULT_DECISIONS: DecisionLogOptions = { target: { kind: 'stdout' }, allowOneIn: 1000 };

export function createTelemetry(options: TelemetryOptions) {
  const { decisions: decisionOptions, tracing: makeTracing, ...logOptions } = options;
  const logging = startLogging(logOptions);
  const { log, dropped, flush } = logging;
  const metrics = new Metrics();
  const decisions = decisionLog(decisionOptions ?? DEFAULT_DECISIONS, logging);
  const tracing = makeTracing?.({
    onLost: (err) => log.warn({ part: 'traces', err }, 'spans are lost'),
    warn: (message) => log.warn({ part: 'traces' }, message),
  });
  let now = Date.now;
  const tally = new DecisionTally({ now: () => now() });
  const recent = new RecentDecisions();
  const shadowMeter = new CheckMeter();
  const shadowTally = new DecisionTally({ now: () => now() });
  const trial = new TrialDecisions();
  metrics.show('postern_build_info', () => [[manifest.version, process.versions.node, 1]]);
  metrics.show('postern_shadow_checks_total', () => shadowMeter.byCode());
  metrics.show('postern_shadow_decisions_dropped_total', () => trial.dropped);
  metrics.show('postern_decision_counts_dropped_total', () => tally.dropped + shadowTally.dropped);
  metrics.show('postern_recent_denials_dropped_total', () => recent.dropped);
  metrics.show('postern_decision_log_dropped_total', () => Object.entries(decisions?.dropped ?? NONE_DROPPED));
  metrics.show('postern_trace_spans_dropped_total', () => tracing?.dropped ?? 0);
  metrics.show('postern_log_dropped_total', dropped);
  return {
    log,
    /** A part that is created later adds its metrics. */
    metrics,
    /** The gate's observer. */
    observer: checkObserver(metrics.checks, tally, decisions, recent, {
      meter: shadowMeter,
      tally: shadowTally,
      recent: trial,
    }),
    /** The gate's decision counts, until a writer takes them. */
    tally,
    /** Denials and a sample of the gate's allows, until a writer takes them. */
    recent,
    /** The same for checks in shadow mode. */
    shadowTally,
    trial,
    feedEvents: feedReports(log.child({ part: 'change feed' }), metrics),
    httpRequest: httpRequests(metrics),
    /** Counts an API request that was answered 401 or 403. */
    httpRefusal: httpRefusals(metrics),
    database: databaseReports(metrics),
    /** Counts the outcome of each request to a directory. */
    directory: directoryReports(metrics),
    /** Adds the metrics of the caches and the feed. Must be called at most once. */
    watch: ({ live, feedAgeMs, now: storeNow }: Watched): void => {
      now = storeNow;
      watchCaches(metrics, live);
      metrics.show('postern_feed_age_seconds', () => feedAgeMs() / 1000);
    },
    /** Called when TLS files have changed on disk. */
    tlsReload: tlsReloads(log.child({ part: 'grpc tls' }), metrics),
    /** Undefined unless traces are configured. */
    tracing,
    /**
     * Opens the decision log. The gate must call it before it serves. Rejects with one sentence that names the setting if
     * it cannot be written.
     */
    openDecisionLog: async (): Promise<void> => decisions?.open(),
    /** Writes everything that waits, within seconds, at shutdown. */
    flush: async (): Promise<void> => {
      await Promise.all([decisions?.close(), tracing?.close()]);
      flush();
    },
  };
}

const NONE_DROPPED = { allow: 0, deny: 0, fault: 0 };

/** Undefined without a decision log. */
function decisionLog({ target, allowOneIn }: DecisionLogOptions, logging: Logging): DecisionLog | undefined {
  const sink = target && sinkFor(target, logging);
  if (sink === undefined) return undefined;
  return new DecisionLog({
    sink,
    allowOneIn,
    monotonicMs: () => performance.now(),
    onLost: (err) => logging.log.warn({ part: 'decisions', err }, 'lines of the decision log are lost'),
  });
}

/** Returns the listeners of the change feed's events. */
function feedReports(log: Log, metrics: Metrics) {
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
