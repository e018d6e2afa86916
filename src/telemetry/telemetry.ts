/** Everything that one process tells about itself: its log, its metrics and the log of decisions, joined. */

import manifest from '../../package.json' with { type: 'json' };
import type { ErrorCode } from '../domain/errors.ts';
import { type CacheStats, watchCaches } from './cache-metrics.ts';
import { type CheckObserver, checkObserver } from './check-observer.ts';
import { type DatabaseReports, databaseReports } from './database-metrics.ts';
import { DecisionLog } from './decision-log.ts';
import { type DecisionTarget, sinkFor } from './decision-sinks.ts';
import { DecisionTally } from './decision-tally.ts';
import { type DirectoryReport, directoryReports } from './directory-metrics.ts';
import { type CallStats, type TlsReload, tlsReloads, watchCalls } from './grpc-metrics.ts';
import { type AnsweredRequest, httpRefusals, httpRequests } from './http-metrics.ts';
import { type Log, type Logging, type LogOptions, startLogging } from './log.ts';
import { type AccessLogStats, type MeteringStats, watchAccessLog, watchMetering } from './metering-metrics.ts';
import { type LoginOutcome, Metrics } from './metrics.ts';
import { RecentDecisions } from './recent-decisions.ts';
import {
  certificateEnd,
  type QuotaUse,
  type SealingReports,
  sealingReports,
  watchQuotas,
  watchSigningKey,
} from './state-metrics.ts';
import type { Tracing, TracingOptions } from './tracing.ts';

/** What the change feed reports. */
export interface FeedReports {
  onError(error: Error): void;
  /** @param lagMs how old the oldest change just applied was; 0 when there was none */
  onPoll(lagMs: number): void;
  onFlush(reason: string): void;
  /** Called once for each kind of change that this program does not know. */
  onUnknownKind(kind: string): void;
}

export interface Watched {
  readonly live: () => CacheStats;
  /** Since the last poll of the feed that succeeded; Infinity before the first. */
  readonly feedAgeMs: () => number;
  /** The store's time, milliseconds since the epoch, by which decisions are counted; before, it is this machine's. */
  readonly now: () => number;
}

export interface ReadyProcesses {
  readonly kind: string;
  readonly ready: number;
}

export interface ProcessRestarts {
  readonly kind: string;
  readonly count: number;
}

export interface Telemetry {
  readonly log: Log;
  /** For the gate. */
  readonly observer: CheckObserver;
  /** What the gate decided, until somebody keeps it. */
  readonly tally: DecisionTally;
  /** Denials and a sample of allows of the gate, until a writer takes them. */
  readonly recent: RecentDecisions;
  readonly feedEvents: FeedReports;
  readonly login: (outcome: LoginOutcome) => void;
  /** Counts a refresh token that was used by two. */
  readonly refreshReuse: () => void;
  /** Counts an answered API request. */
  readonly httpRequest: (request: AnsweredRequest) => void;
  /** Counts an API request that was answered 401 or 403. */
  readonly httpRefusal: (code: ErrorCode) => void;
  readonly database: DatabaseReports;
  /** Counts an API request whose client went away before it was complete. */
  readonly abortedUpload: () => void;
  /** Told what each question to a directory came to. */
  readonly directory: (report: DirectoryReport) => void;
  /** Takes up what exists only once the server is joined. Call it once. */
  readonly watch: (watched: Watched) => void;
  /** The same for limits, and what ends of requests they are told of. */
  readonly watchMetering: (metering: () => MeteringStats, accessLog: () => AccessLogStats) => void;
  /** The same for the processes of a supervisor: those that can serve, and how often each kind was replaced. */
  readonly watchProcesses: (ready: () => readonly ReadyProcesses[], restarts: () => readonly ProcessRestarts[]) => void;
  /** The same for writes that were answered before every gate of this server had applied them. */
  readonly watchLocalGates: (timeouts: () => number) => void;
  /** The same for the calls of the gRPC listener. */
  readonly watchCalls: (calls: () => CallStats) => void;
  /** The same for the key that signs now: its age, undefined before there is one. */
  readonly watchSigningKey: (ageMs: () => number | undefined) => void;
  /** The same for token quotas: the tenants nearest to the end of their quotas, the nearest first. */
  readonly watchQuotas: (quotas: () => readonly QuotaUse[]) => void;
  /** For the process that seals the audit log: begins to show how that goes, and is told. */
  readonly sealing: () => SealingReports;
  /** For a gRPC listener with TLS: begins to show when its certificate ends, and is told the end in milliseconds since the epoch. */
  readonly certificate: () => (endMs: number) => void;
  /** Called when TLS files have changed on disk. */
  readonly tlsReload: (reload: TlsReload) => void;
  /** The metrics in Prometheus' text format. */
  readonly metrics: () => Promise<string>;
  /** For a supervisor, before it starts its processes: its metrics together with theirs. */
  readonly clusterMetrics: () => () => Promise<string>;
  /** For a worker process: lets the first one show these metrics together with those of the others. */
  readonly answerCluster: () => void;
  /** Undefined unless traces are configured. */
  readonly tracing: Tracing | undefined;
  /** For the gate, before it serves: opens the decision log. Rejects with one sentence that names the setting if it cannot be written. */
  readonly openDecisionLog: () => Promise<void>;
  /** Writes what is still held back, within seconds; for the end of the process. */
  readonly flush: () => Promise<void>;
}

export interface DecisionLogOptions {
  /** Undefined = no decision is logged. */
  readonly target: DecisionTarget | undefined;
  /** One allow in this many is logged; 0 = none. */
  readonly allowOneIn: number;
}

export interface TelemetryOptions extends LogOptions {
  /** Whether metrics may name tenants; default: false. */
  readonly namesTenants?: boolean;
  /** Default: standard output, with one allow in 1000. */
  readonly decisions?: DecisionLogOptions;
  /** Makes the traces' recorder; default: no traces. */
  readonly tracing?: ((reports: TracingReports) => Tracing) | undefined;
}

export type TracingReports = Pick<TracingOptions, 'onLost' | 'warn'>;

const DEFAULT_DECISIONS: DecisionLogOptions = { target: { kind: 'stdout' }, allowOneIn: 1000 };

export function createTelemetry(options: TelemetryOptions): Telemetry {
  const { namesTenants = false, decisions: decisionOptions, tracing: makeTracing, ...logOptions } = options;
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
  metrics.show('postern_build_info', () => [[manifest.version, process.versions.node, 1]]);
  metrics.show('postern_decision_counts_dropped_total', () => tally.dropped);
  metrics.show('postern_recent_denials_dropped_total', () => recent.dropped);
  metrics.show('postern_decision_log_dropped_total', () => Object.entries(decisions?.dropped ?? NONE_DROPPED));
  metrics.show('postern_trace_spans_dropped_total', () => tracing?.dropped ?? 0);
  metrics.show('postern_log_dropped_total', dropped);
  return {
    log,
    observer: checkObserver(metrics.checks, tally, decisions, recent),
    tally,
    recent,
    feedEvents: feedReports(log.child({ part: 'change feed' }), metrics),
    login: (outcome) => metrics.login(outcome),
    refreshReuse: () => metrics.refreshReuse(),
    httpRequest: httpRequests(metrics),
    httpRefusal: httpRefusals(metrics),
    database: databaseReports(metrics),
    abortedUpload: () => metrics.abortedUpload(),
    directory: directoryReports(metrics),
    watch: ({ live, feedAgeMs, now: storeNow }) => {
      now = storeNow;
      watchCaches(metrics, live);
      metrics.show('postern_feed_age_seconds', () => feedAgeMs() / 1000);
    },
    watchMetering: (metering, accessLog) => {
      watchMetering(metrics, metering);
      watchAccessLog(metrics, accessLog);
    },
    watchProcesses: (ready, restarts) => {
      metrics.show('postern_processes_ready', () => ready().map(({ kind, ready: count }) => [kind, count]));
      metrics.show('postern_process_restarts_total', () => restarts().map(({ kind, count }) => [kind, count]));
    },
    watchLocalGates: (timeouts) => metrics.show('postern_local_apply_timeouts_total', timeouts),
    watchCalls: (calls) => watchCalls(metrics, calls),
    watchSigningKey: (ageMs) => watchSigningKey(metrics, ageMs),
    watchQuotas: (quotas) => watchQuotas(metrics, namesTenants, quotas),
    sealing: () => sealingReports(metrics, () => performance.now()),
    certificate: () => certificateEnd(metrics),
    tlsReload: tlsReloads(log.child({ part: 'grpc tls' }), metrics),
    metrics: () => metrics.exposition(),
    clusterMetrics: () => metrics.cluster(),
    answerCluster: () => metrics.answerCluster(),
    tracing,
    openDecisionLog: async () => decisions?.open(),
    flush: async () => {
      await Promise.all([decisions?.close(), tracing?.close()]);
      flush();
    },
  };
}

const NONE_DROPPED = { allow: 0, deny: 0, fault: 0 };

/** Undefined if no decision is logged. */
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
      // Reported once for each kind by onUnknownKind, since a newer replica may write many of them.
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
