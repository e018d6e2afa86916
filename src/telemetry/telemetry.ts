/** The telemetry of one process: its log, its metrics, the decision log and traces. */

import { type CacheStats, watchCaches } from './cache-metrics.ts';
import { CheckMeter } from './check-meter.ts';
import { checkObserver } from './check-observer.ts';
import { databaseReports } from './database-metrics.ts';
import { DecisionLog } from './decision-log.ts';
import { watchDecisions } from './decision-metrics.ts';
import { type DecisionTarget, sinkFor } from './decision-sinks.ts';
import { DecisionTally } from './decision-tally.ts';
import { directoryReports } from './directory-metrics.ts';
import { feedReports, watchFeed } from './feed-metrics.ts';
import { tlsReloads } from './grpc-metrics.ts';
import { abortedUploads, httpRefusals, httpRequests } from './http-metrics.ts';
import { type Logging, type LogOptions, startLogging } from './log.ts';
import { loginReports } from './login-metrics.ts';
import { Metrics } from './metrics.ts';
import { watchProcess } from './process-metrics.ts';
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
  watchProcess(metrics, dropped);
  watchDecisions(metrics, { shadowMeter, trial, tallies: [tally, shadowTally], recent, log: decisions, tracing });
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
    /** Counts an API request whose client disconnected before it was complete. */
    abortedUpload: abortedUploads(metrics),
    logins: loginReports(metrics),
    database: databaseReports(metrics),
    /** Counts the outcome of each request to a directory. */
    directory: directoryReports(metrics),
    /** Adds the metrics of the caches and the feed. Must be called at most once. */
    watch: ({ live, feedAgeMs, now: storeNow }: Watched): void => {
      now = storeNow;
      watchCaches(metrics, live);
      watchFeed(metrics, feedAgeMs);
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
