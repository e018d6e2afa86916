/** All metrics. */

import { CACHE_METRICS } from './cache-metrics.ts';
import { CHECK_METRICS } from './check-metrics.ts';
import { DATABASE_METRICS } from './database-metrics.ts';
import { DECISION_METRICS } from './decision-metrics.ts';
import { DIRECTORY_METRICS } from './directory-metrics.ts';
import { FEED_METRICS } from './feed-metrics.ts';
import { GRPC_METRICS } from './grpc-metrics.ts';
import { HTTP_METRICS } from './http-metrics.ts';
import { ISSUER_METRICS } from './issuer-metrics.ts';
import { LOGIN_METRICS } from './login-metrics.ts';
import { METERING_METRICS } from './metering-metrics.ts';
import type { MetricDefinition } from './metric-definition.ts';
import { PROCESS_METRICS } from './process-metrics.ts';
import { STATE_METRICS } from './state-metrics.ts';
import { WEBHOOK_METRICS } from './webhook-metrics.ts';

export const METRICS = {
  ...CHECK_METRICS,
  ...PROCESS_METRICS,
  ...GRPC_METRICS,
  ...LOGIN_METRICS,
  ...HTTP_METRICS,
  ...CACHE_METRICS,
  ...DATABASE_METRICS,
  ...STATE_METRICS,
  ...ISSUER_METRICS,
  ...WEBHOOK_METRICS,
  ...FEED_METRICS,
  ...DECISION_METRICS,
  ...METERING_METRICS,
  ...DIRECTORY_METRICS,
} satisfies Readonly<Record<`postern_${string}`, MetricDefinition>>;

type MetricName = keyof typeof METRICS;

/** Names of the metrics of one type. */
export type NameOf<T extends MetricDefinition['type']> = {
  [N in MetricName]: (typeof METRICS)[N]['type'] extends T ? N : never;
}[MetricName];

type LabelsOf<N extends MetricName> = (typeof METRICS)[N]['labels'];

/** The values of the metric's labels in their order, then the value. A label without a value is left out. */
type Row<L extends readonly string[]> = readonly [...{ [I in keyof L]: string | undefined }, number];

/** The values of a metric at one scrape. Without labels: undefined shows no series. */
export type Reading<N extends MetricName> =
  LabelsOf<N> extends readonly [] ? number | undefined : Iterable<Row<LabelsOf<N>>>;
