/** Metrics of PostgreSQL: connection pools and statements. */

import { counter, gauge, histogram } from './metric-definition.ts';
import type { Metrics } from './metrics.ts';

export const DATABASE_METRICS = {
  postern_database_connections: gauge(['state'], 'Connections to the database by state; max: the sum of the bounds.', {
    explanation: '`used`, `idle` and `max`, for all pools together.',
  }),
  postern_database_waiting: gauge([], 'Callers that wait for a connection to the database.'),
  postern_database_statements_total: counter(['outcome'], 'Database statements by outcome.', {
    explanation:
      '`success`, `error` (PostgreSQL rejected the statement, for example for a duplicate) or `fault` (no answer in time, no connection, a lock).',
  }),
  postern_database_statement_duration_seconds: histogram('Time from sending a database statement to its answer.'),
} as const;

interface PoolUse {
  readonly max: number;
  readonly used: number;
  readonly idle: number;
  /** Callers that wait for a connection. */
  readonly waiting: number;
}

/** `error`: PostgreSQL rejected the statement. `fault`: the store could not be used. */
type StatementOutcome = 'success' | 'error' | 'fault';

export interface DatabaseReports {
  /** Adds the pool to the metrics. Returns the function that removes it. */
  readonly pool: (use: () => PoolUse) => () => void;
  readonly statement: (outcome: StatementOutcome, tookMs: number) => void;
}

export function databaseReports(metrics: Metrics): DatabaseReports {
  const pools = new Set<() => PoolUse>();
  const counts: Record<StatementOutcome, number> = { success: 0, error: 0, fault: 0 };
  const sum = (read: (use: PoolUse) => number): number => [...pools].reduce((total, use) => total + read(use()), 0);
  metrics.show('postern_database_connections', () => [
    ['used', sum(({ used }) => used)],
    ['idle', sum(({ idle }) => idle)],
    ['max', sum(({ max }) => max)],
  ]);
  metrics.show('postern_database_waiting', () => sum(({ waiting }) => waiting));
  metrics.show('postern_database_statements_total', () => Object.entries(counts));
  const durations = metrics.histogram('postern_database_statement_duration_seconds');
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
