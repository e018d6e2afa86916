/**
 * The metrics of one process in Prometheus' text format. What is counted often is counted in plain numbers by whoever counts it, and
 * read here only when somebody asks.
 */

import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import { CheckMeter, type Labelled } from './check-meter.ts';
import { answerMetrics, clusterMetrics } from './cluster.ts';
import { DurationHistogram, withHistogramHeadings } from './histogram.ts';

/** Sums of other gauges, named as counters are. */
const MISNAMED = ['nodejs_active_handles_total', 'nodejs_active_requests_total', 'nodejs_active_resources_total'];

export type LoginOutcome = 'success' | 'failure' | 'refused' | 'throttled';

export interface Described {
  /** With the prefix `postern_`, and `_total` for what only grows. */
  readonly name: string;
  readonly help: string;
  /** What several workers show together; the sum unless told. */
  readonly together?: 'sum' | 'max' | 'min';
}

export class Metrics {
  readonly checks = new CheckMeter();
  readonly #registry = new Registry();
  readonly #logins: Counter<'outcome'>;
  #abortedUploads = 0;
  #refreshReuses = 0;

  constructor() {
    collectDefaultMetrics({ register: this.#registry });
    for (const name of MISNAMED) this.#registry.removeSingleMetric(name);
    this.#logins = new Counter({
      name: 'postern_logins_total',
      help: 'Logins by outcome.',
      labelNames: ['outcome'],
      registers: [this.#registry],
    });
    this.counter(
      {
        name: 'postern_http_aborted_uploads_total',
        help: 'API requests whose client disconnected before they were complete.',
      },
      () => this.#abortedUploads,
    );
    this.counter(
      {
        name: 'postern_refresh_reuse_total',
        help: 'Refresh tokens that were used twice. The server ended the session of each.',
      },
      () => this.#refreshReuses,
    );
    this.counters({ name: 'postern_checks_total', help: 'Checks by outcome and code.' }, ['outcome', 'code'], () =>
      this.checks.byCode(),
    );
    this.counters(
      { name: 'postern_route_checks_total', help: 'Decided checks by route and outcome.' },
      ['method', 'route', 'outcome'],
      () => this.checks.byRoute(),
    );
    this.counters(
      {
        name: 'postern_bodies_not_sent_total',
        help: "Checks of a route that reads the body, for which Envoy sent no body because Envoy's configuration lacks the setting for the route.",
      },
      ['method', 'route', 'setting'],
      () => this.checks.bodiesNotSent(),
    );
    this.#exposeHistogram(
      { name: 'postern_check_duration_seconds', help: 'Time to answer a check.' },
      this.checks.durations,
    );
  }

  login(outcome: LoginOutcome): void {
    this.#logins.inc({ outcome });
  }

  refreshReuse(): void {
    this.#refreshReuses++;
  }

  abortedUpload(): void {
    this.#abortedUploads++;
  }

  /** A value that somebody else keeps; read at each scrape. */
  gauge(described: Described, read: () => number): void {
    this.gauges(described, [], () => [{ labels: {}, value: read() }]);
  }

  gauges(
    { name, help, together = 'sum' }: Described,
    labelNames: readonly string[],
    read: () => readonly Labelled[],
  ): void {
    const registers = [this.#registry];
    new Gauge({
      name,
      help,
      aggregator: together,
      labelNames: [...labelNames],
      registers,
      collect() {
        this.reset();
        for (const { labels, value } of read()) {
          this.set(labels, value);
        }
      },
    });
  }

  /** A number that only grows and that somebody else counts. */
  counter(described: Described, read: () => number): void {
    this.counters(described, [], () => [{ labels: {}, value: read() }]);
  }

  counters({ name, help }: Described, labelNames: readonly string[], read: () => readonly Labelled[]): void {
    const registers = [this.#registry];
    new Counter({
      name,
      help,
      labelNames: [...labelNames],
      registers,
      collect() {
        this.reset();
        for (const { labels, value } of read()) {
          this.inc(labels, value);
        }
      },
    });
  }

  histogram(name: string, help: string): DurationHistogram {
    const histogram = new DurationHistogram();
    this.#exposeHistogram({ name, help }, histogram);
    return histogram;
  }

  async exposition(): Promise<string> {
    return withHistogramHeadings(await this.#registry.metrics());
  }

  /** For the supervisor, before it starts other processes: its own metrics together with theirs. */
  cluster(): () => Promise<string> {
    return clusterMetrics(this.#registry);
  }

  /** For a worker: lets the first process ask for these metrics. Once per process. */
  answerCluster(): void {
    answerMetrics(this.#registry);
  }

  #exposeHistogram({ name, help }: Described, histogram: DurationHistogram): void {
    this.counters({ name: `${name}_bucket`, help }, ['le'], () => histogram.buckets());
    this.counter({ name: `${name}_sum`, help }, () => histogram.sumSeconds());
    this.counter({ name: `${name}_count`, help }, () => histogram.count());
  }
}
