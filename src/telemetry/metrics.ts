/**
 * The metrics of one process in Prometheus' text format. Hot paths count in plain numbers, which are read at each
 * scrape.
 */

import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import { CheckMeter } from './check-meter.ts';
import { watchChecks } from './check-metrics.ts';
import { answerMetrics, clusterMetrics } from './cluster.ts';
import { DurationHistogram, withHistogramHeadings } from './histogram.ts';
import { METRICS, type NameOf, type Reading } from './metric-catalog.ts';
import type { MetricDefinition } from './metric-definition.ts';

/** Gauges of the library whose names end as those of counters do. */
const MISNAMED = ['nodejs_active_handles_total', 'nodejs_active_requests_total', 'nodejs_active_resources_total'];

type Rows = Iterable<readonly (string | number | undefined)[]>;

export class Metrics {
  readonly checks = new CheckMeter();
  readonly #registry = new Registry();

  constructor() {
    collectDefaultMetrics({ register: this.#registry });
    for (const name of MISNAMED) this.#registry.removeSingleMetric(name);
    watchChecks(this, this.checks);
  }

  /** Shows a metric. Its values are read at each scrape; a counter's must only grow. */
  show<N extends NameOf<'counter' | 'gauge'>>(name: N, read: () => Reading<N>): void {
    this.#register(name, METRICS[name], () => rowsOf(read()));
  }

  histogram(name: NameOf<'histogram'>, histogram = new DurationHistogram()): DurationHistogram {
    const { help } = METRICS[name];
    const part = (suffix: string, labels: readonly string[], rows: () => Rows): void =>
      this.#register(`${name}_${suffix}`, { type: 'counter', labels, help }, rows);
    part('bucket', ['le'], () => histogram.buckets());
    part('sum', [], () => [[histogram.sumSeconds()]]);
    part('count', [], () => [[histogram.count()]]);
    return histogram;
  }

  async exposition(): Promise<string> {
    return withHistogramHeadings(await this.#registry.metrics());
  }

  /**
   * For the supervisor, before it starts other processes: returns the function that aggregates their metrics with its
   * own.
   */
  cluster(): () => Promise<string> {
    return clusterMetrics(this.#registry);
  }

  /** For a worker, once per process: lets the supervisor request these metrics. */
  answerCluster(): void {
    answerMetrics(this.#registry);
  }

  #register(name: string, { type, labels, help, together }: MetricDefinition, rows: () => Rows): void {
    const common = { name, help, labelNames: [...labels], registers: [this.#registry] };
    if (type === 'gauge') {
      new Gauge({
        ...common,
        aggregator: together ?? 'sum',
        collect() {
          this.reset();
          for (const row of rows()) this.set(labelled(labels, row), lastOf(row));
        },
      });
    } else {
      new Counter({
        ...common,
        collect() {
          this.reset();
          for (const row of rows()) this.inc(labelled(labels, row), lastOf(row));
        },
      });
    }
  }
}

function rowsOf(reading: number | undefined | Rows): Rows {
  if (reading === undefined) return [];
  return typeof reading === 'number' ? [[reading]] : reading;
}

function labelled(
  names: readonly string[],
  row: readonly (string | number | undefined)[],
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    names.flatMap((name, index) => (row[index] === undefined ? [] : [[name, String(row[index])]])),
  );
}

function lastOf(row: readonly (string | number | undefined)[]): number {
  return Number(row.at(-1));
}
