/**
 * How a metric is described. Each `…-metrics.ts` has the definitions of its metrics and shows their values with
 * `Metrics.show`, so a metric is one entry and one line of one file; `npm run docs` writes the tables of docs/metrics.md.
 */

export interface MetricDefinition {
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly labels: readonly string[];
  readonly help: string;
  /** The aggregate over several workers. Default: the sum. */
  readonly together?: 'max' | 'min';
  /** Facts that the documentation adds to `help`, in Markdown: values of labels, bounds, advice. */
  readonly explanation?: string;
  /** The table in the documentation. Default: `server`. */
  readonly table?: 'directory' | 'limits';
}

type Extra = Pick<MetricDefinition, 'together' | 'explanation'>;

/** Returns the functions that make definitions. Without a table: for the documentation's first one. */
export function metricsOf(table?: MetricDefinition['table']) {
  const shown = table === undefined ? {} : { table };
  return {
    counter: <const L extends readonly string[]>(labels: L, help: string, extra: Extra = {}) =>
      ({ type: 'counter', labels, help, ...extra, ...shown }) as const,
    gauge: <const L extends readonly string[]>(labels: L, help: string, extra: Extra = {}) =>
      ({ type: 'gauge', labels, help, ...extra, ...shown }) as const,
    histogram: (help: string, extra: Extra = {}) =>
      ({ type: 'histogram', labels: [], help, ...extra, ...shown }) as const,
  };
}

export const { counter, gauge, histogram } = metricsOf();

/** Returns rows of a metric with two labels: for each group, the named values that `read` returns. */
export function rowsByGroup<T>(
  groups: Readonly<Record<string, T>>,
  read: (group: T) => Readonly<Record<string, number>>,
): readonly (readonly [string, string, number])[] {
  return Object.entries(groups).flatMap(([group, content]) =>
    Object.entries(read(content)).map(([name, value]) => [group, name, value] as const),
  );
}
