/** The telemetry of one process: its log, its metrics, the decision log and traces. */

import manifest from '../../package.json' with { type: 'json' };
import type { ErrorCode } from '../domain/errors.ts';
import { type CacheStats, watchCaches } from './cache-metrics.ts';
import { CheckMeter } from './check-meter.ts';
import { type CheckObserver, checkObserver } from './check-observer.ts';
import { type DatabaseReports, databaseReports } from './database-metrics.ts';
import { DecisionLog } from './decision-log.ts';
import { type DecisionTarget, sinkFor } from './decision-sinks.ts';
import { DecisionTally } from './decision-tally.ts';
import { type DirectoryReport, directoryReports } from './directory-metrics.ts';
import { type TlsReload, tlsReloads } from './grpc-metrics.ts';
import { type AnsweredRequest, httpRefusals, httpRequests } from './http-metrics.ts';
import { type Log, type Logging, type LogOptions, startLogging } from './log.ts';
import { Metrics } from './metrics.ts';
import { RecentDecisions } from './recent-decisions.ts';
import type { Tracing, TracingOptions } from './tracing.ts';
import { TrialDecisions } from './trial-decisions.ts';

/** Events of the change feed. */
interface FeedReports {
  onError(error: Error): void;
  /** @param lagMs the age of the oldest change that was just applied; 0 without changes */
  onPoll(lagMs: number): void;
  onFlush(reason: string): void;
  /** Called once for each kind of change that this program does not know. */
  onUnknownKind(kind: string): void;
}

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

export interface Telemetry {
  readonly log: Log;
  /** A part that is created later adds its metrics. */
  readonly metrics: Metrics;
  /** The gate's observer. */
  readonly observer: CheckObserver;
  /** The gate's decision counts, until a writer takes them. */
  readonly tally: DecisionTally;
  /** Denials and a sample of the gate's allows, until a writer takes them. */
  readonly recent: RecentDecisions;
  /** The same for checks in shadow mode. */
  readonly shadowTally: DecisionTally;
  readonly trial: TrialDecisions;
  readonly feedEvents: FeedReports;
  readonly httpRequest: (request: AnsweredRequest) => void;
  /** Counts an API request that was answered 401 or 403. */
  readonly httpRefusal: (code: ErrorCode) => void;
  readonly database: DatabaseReports;
  /** Counts the outcome of each request to a directory. */
  readonly directory: (report: DirectoryReport) => void;
  /** Adds the metrics of the caches and the feed. Must be called at most once. */
  readonly watch: (watched: Watched) => void;
  /** Called when TLS files have changed on disk. */
  readonly tlsReload: (reload: TlsReload) => void;
  /** Undefined unless traces are configured. */
  readonly tracing: Tracing | undefined;
  /**
   * Opens the decision log. The gate must call it before it serves. Rejects with one sentence that names the setting if
   * it cannot be written.
   */
  readonly openDecisionLog: () => Promise<void>;
  /** Writes everything that waits, within seconds, at shutdown. */
  readonly flush: () => Promise<void>;
}

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

export function createTelemetry(options: TelemetryOptions): Telemetry {
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
    metrics,
    observer: checkObserver(metrics.checks, tally, decisions, recent, {
      meter: shadowMeter,
      tally: shadowTally,
      recent: trial,
    }),
    tally,
    recent,
    shadowTally,
    trial,
    feedEvents: feedReports(log.child({ part: 'change feed' }), metrics),
    httpRequest: httpRequests(metrics),
    httpRefusal: httpRefusals(metrics),
    database: databaseReports(metrics),
    directory: directoryReports(metrics),
    watch: ({ live, feedAgeMs, now: storeNow }) => {
      now = storeNow;
      watchCaches(metrics, live);
      metrics.show('postern_feed_age_seconds', () => feedAgeMs() / 1000);
    },
    tlsReload: tlsReloads(log.child({ part: 'grpc tls' }), metrics),
    tracing,
    openDecisionLog: async () => decisions?.open(),
    flush: async () => {
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

function feedReports(log: Log, metrics: Metrics): FeedReports {
  const lag = metrics.histogram('postern_feed_lag_seconds');
  const counts = { polls: 0, errors: 0, flushes: 0, unknown: 0 };
  let isDown = false;
  metrics.show('postern_database_down', () => (isDown ? 1 : 0));
  metrics.show('postern_feed_polls_total', () => counts.polls);
  metrics.show('postern_feed_errors_total', () => counts.errors);
  metrics.show('postern_feed_flushes_total', () => counts.flushes);
  metrics.show('postern_feed_unknown_flushes_total', () => counts.unknown);
  return {
    onError: (err) => {
      counts.errors++;
      isDown = true;
      log.warn({ err }, 'the change feed could not be read');
    },
    onPoll: (lagMs) => {
      counts.polls++;
      isDown = false;
      if (lagMs > 0) {
        lag.observe(lagMs);
      }
    },
    onFlush: (reason) => {
      counts.flushes++;
      // onUnknownKind reports each kind once, because a newer replica may write many such changes.
      if (reason === 'unknown_kind') {
        counts.unknown++;
        return;
      }
      log.warn({ reason }, 'the change feed lost its position; all caches are flushed');
    },
    onUnknownKind: (kind) => {
      log.warn(
        { kind },
        'the change feed has a kind of change that this version does not know: each such change flushes the caches. Upgrade this server',
      );
    },
  };
}
