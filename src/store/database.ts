/**
 * The way into PostgreSQL: one pool, and knex over it for the values of statements. Transactions are in transaction.ts.
 */

import createKnex, { type Knex } from 'knex';
import pg from 'pg';
import type { DatabaseReports } from '../telemetry/database-metrics.ts';
import type { Tracing } from '../telemetry/tracing.ts';
import { type ConnectionPermits, createConnectionPermits } from './connection-permits.ts';
import { clientOptions, createPool, type Pool, type Row, type Statement } from './pool.ts';

export interface DatabaseOptions {
  /**
   * `postgresql://user:password@host:port/database`, or `postgresql://user@/database?host=/directory` for a Unix
   * socket.
   */
  readonly url: string;
  /** Connections at most; 10 unless told. */
  readonly poolMax?: number;
  /** The longest wait for a connection; 2000 unless told. */
  readonly acquireTimeoutMs?: number;
  /** The longest wait for the answer to one statement; 2000 unless told. */
  readonly queryTimeoutMs?: number;
  /** Default: no traces. */
  readonly tracing?: Tracing | undefined;
  /** Default: no metrics. */
  readonly reports?: DatabaseReports | undefined;
}

export interface Database {
  /**
   * For building statements. Fails with a Fault when the database cannot answer in time, with pg's DatabaseError
   * otherwise.
   */
  readonly knex: Knex;
  /** The connections of all of them. */
  readonly pool: Pool;
  /** Runs one statement, outside any transaction; rows as they come. Fails like `knex`. */
  query(statement: Statement): Promise<readonly Row[]>;
  /**
   * A connection of one's own, not yet connected and not of the pool: for LISTEN, and for locks held across
   * transactions.
   */
  newClient(): pg.Client;
  /** Bounds the transactions at once, so that connections are left for everything else. */
  readonly permits: ConnectionPermits;
  /** A second pool to the same database, with other bounds. */
  reopen(changes: Omit<DatabaseOptions, 'url'>): Database;
  close(): Promise<void>;
}

/** Connections that transactions leave to single statements, where there are so many. */
const SPARED = 2;
/** Less than proxies wait for an answer: a client is told to come again before they give up. */
const MAX_PERMIT_WAIT_MS = 8000;
const MAX_WAITING = 1000;

export function openDatabase(options: DatabaseOptions): Database {
  const { url, poolMax = 10, acquireTimeoutMs = 2000, queryTimeoutMs = 2000, tracing, reports } = options;
  const permits = Math.max(1, poolMax - SPARED);
  const pool = createPool({ url, max: poolMax, acquireTimeoutMs, queryTimeoutMs, tracing, reports });
  const knex = createKnex({
    client: 'pg',
    connectionPool: pool,
    // Else knex writes every bound value, secrets too, into the message of an error.
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
