/** The tables of metrics in docs/metrics.md. */

import { METRICS } from '../../../src/telemetry/metric-catalog.ts';
import type { MetricDefinition } from '../../../src/telemetry/metric-definition.ts';
import { table, tableCell } from './markdown.ts';

export function metricTable(name: 'server' | 'directory' | 'limits'): string {
  const metrics: readonly (readonly [string, MetricDefinition])[] = Object.entries(METRICS);
  const rows = metrics
    .filter(([, metric]) => (metric.table ?? 'server') === name)
    .map(([metric, { type, labels, help, explanation }]) => [
      `\`${metric}${labels.length === 0 ? '' : `{${labels.join(',')}}`}\``,
      type,
      tableCell(explanation === undefined ? help : `${help} ${explanation}`),
    ]);
  return table(['metric', 'type', 'meaning'], rows);
}
