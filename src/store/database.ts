/** A connection pool to PostgreSQL with knex on it. Transactions are in transaction.ts. */

import createKnex from 'knex';
import pg from 'pg';
import { type ConnectionPermits, createConnectionPermits } from './connection-permits.ts';
import { clientOptions, createPool, type Pool, type PoolOptions, type Row, type Statement } from './pool.ts';
import type { Queryable } from './queryable.ts';

/** Both timeouts default to 2000. */
interface DatabaseOptions
  extends Pick<PoolOptions, 'url' | 'tracing' | 'reports'>,
    Partial<Pick<PoolOptions, 'acquireTimeoutMs' | 'queryTimeoutMs'>> {
  /** The largest number of connections. Default: 10. */
  readonly poolMax?: number;
}

export interface Database {
  readonly knex: Queryable;
  readonly pool: Pool;
  /** Runs one statement outside of transactions, without knex. For statements of the hot path. Rejects like `knex`. */
  query(statement: Statement): Promise<readonly Row[]>;
  /** Returns an unconnected client outside of the pool: for LISTEN, and for locks that outlast transactions. */
  newClient(): pg.Client;
  /** Bounds the number of transactions, so that connections are left for single statements. */
  readonly permits: ConnectionPermits;
  /** Opens a second pool to the same database, with other bounds. */
  reopen(changes: Omit<DatabaseOptions, 'url'>): Database;
  close(): Promise<void>;
}

/** Connections that transactions leave to single statements, if the pool is large enough. */
const RESERVED_CONNECTIONS = 2;
/** Shorter than the timeout of proxies, so that a client gets a 503 with Retry-After. */
const MAX_PERMIT_WAIT_MS = 8000;
const MAX_WAITING = 1000;

export function openDatabase(options: DatabaseOptions): Database {
  const { url, poolMax = 10, acquireTimeoutMs = 2000, queryTimeoutMs = 2000, tracing, reports } = options;
  const permits = Math.max(1, poolMax - RESERVED_CONNECTIONS);
  const pool = createPool({ url, max: poolMax, acquireTimeoutMs, queryTimeoutMs, tracing, reports });
  const knex = createKnex({
    client: 'pg',
    connectionPool: pool,
    // Otherwise knex would write the values of a statement, also secrets, into error messages.
    compileSqlOnError: false,
    log: { warn: ignore, error: ignore, deprecate: ignore, debug: ignore },
  });
  return {
    knex,
    pool,
    query: (statement) => pool.run(statement),
    permits: createConnectionPermits({ permits, maxWaiting: MAX_WAITING, maxWaitMs: MAX_PERMIT_WAIT_MS }),
    newClient: () => new pg.Client(clientOptions({ url, acquireTimeoutMs })),
    reopen: (changes) => openDatabase({ ...options, ...changes }),
    close: () => pool.destroy(),
  };
}

function ignore(): void {}
