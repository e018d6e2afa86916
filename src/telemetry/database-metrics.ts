/** The pools of connections to PostgreSQL and their statements, as metrics. */

import type { Metrics } from './metrics.ts';

/** Connections of one pool. */
export interface PoolUse {
  readonly max: number;
  readonly used: number;
  readonly idle: number;
  /** Callers that wait for a connection. */
  readonly waiting: number;
}

/** `error`: PostgreSQL rejected the statement. `fault`: the store could not be used. */
export type StatementOutcome = 'success' | 'error' | 'fault';

export interface DatabaseReports {
  /** Shows the pool. Returns the function that stops to show it. */
  readonly pool: (use: () => PoolUse) => () => void;
  readonly statement: (outcome: StatementOutcome, tookMs: number) => void;
}

export function databaseReports(metrics: Metrics): DatabaseReports {
  const pools = new Set<() => PoolUse>();
  const counts: Record<StatementOutcome, number> = { success: 0, error: 0, fault: 0 };
  const sum = (read: (use: PoolUse) => number): number => [...pools].reduce((total, use) => total + read(use()), 0);
  metrics.gauges(
    { name: 'postern_database_connections', help: 'Connections to the database by state; max: the sum of the bounds.' },
    ['state'],
    () => [
      { labels: { state: 'used' }, value: sum(({ used }) => used) },
      { labels: { state: 'idle' }, value: sum(({ idle }) => idle) },
      { labels: { state: 'max' }, value: sum(({ max }) => max) },
    ],
  );
  metrics.gauge({ name: 'postern_database_waiting', help: 'Callers that wait for a connection to the database.' }, () =>
    sum(({ waiting }) => waiting),
  );
  metrics.counters(
    { name: 'postern_database_statements_total', help: 'Database statements by outcome.' },
    ['outcome'],
    () => Object.entries(counts).map(([outcome, value]) => ({ labels: { outcome }, value })),
  );
  const durations = metrics.histogram(
    'postern_database_statement_duration_seconds',
    'Time from sending a database statement to its answer.',
  );
  return {
    pool: (use) => {
      pools.add(use);
      return () => pools.delete(use);
    },
    statement: (outcome, tookMs) => {
      counts[outcome] += 1;
      durations.observe(tookMs);
    },
  };
}
