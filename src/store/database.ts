/** The way into PostgreSQL: one pool, knex over it for building statements, and transactions that are either done or reported. */

import { setTimeout as sleep } from 'node:timers/promises';
import createKnex, { type Knex } from 'knex';
import pg from 'pg';
import { Fault } from '../domain/errors.ts';
import { isRetryable, statementError } from './faults.ts';
import { clientOptions, createPool, type Pool, type Row, runOn, type Statement } from './pool.ts';
import { runPreparedBy } from './prepared.ts';
import { sentTogether } from './together.ts';
import { makeTurns, type Turns } from './turns.ts';

export interface DatabaseOptions {
  /** `postgresql://user:password@host:port/database`, or `postgresql://user@/database?host=/directory` for a Unix socket. */
  readonly url: string;
  /** Connections at most; 10 unless told. */
  readonly poolMax?: number;
  /** The longest wait for a connection; 2000 unless told. */
  readonly acquireTimeoutMs?: number;
  /** The longest wait for the answer to one statement; 2000 unless told. */
  readonly queryTimeoutMs?: number;
}

export interface Database {
  /** For building statements. Fails with a Fault when the database cannot answer in time, with pg's DatabaseError otherwise. */
  readonly knex: Knex;
  /** Runs one statement, outside any transaction; rows as they come. Fails like `knex`. */
  query(statement: Statement): Promise<readonly Row[]>;
  /** A connection of one's own, not yet connected and not of the pool: for LISTEN, and for locks held across transactions. */
  newClient(): pg.Client;
  /** Of transactions: so few at a time that connections are left for everything else. */
  readonly turns: Turns;
  /** A second pool to the same database, with other bounds. */
  reopen(changes: Omit<DatabaseOptions, 'url'>): Database;
  close(): Promise<void>;
}

/** Connections that transactions leave to single statements, where there are so many. */
const SPARED = 2;
/** Less than proxies wait for an answer: a client is told to come again before they give up. */
const MAX_TURN_WAIT_MS = 8000;
const MAX_WAITING = 1000;

export function openDatabase(options: DatabaseOptions): Database {
  const { url, poolMax = 10, acquireTimeoutMs = 2000, queryTimeoutMs = 2000 } = options;
  const pool = createPool({ url, max: poolMax, acquireTimeoutMs, queryTimeoutMs });
  const knex = createKnex({
    client: 'pg',
    connectionPool: pool,
    // Else knex writes every bound value, secrets too, into the message of an error.
    compileSqlOnError: false,
    log: { warn: ignore, error: ignore, deprecate: ignore, debug: ignore },
  });
  runPreparedBy(knex, pool.run);
  pools.set(knex, pool);
  return {
    knex,
    query: (statement) => pool.run(statement),
    turns: makeTurns({ places: Math.max(1, poolMax - SPARED), maxWaiting: MAX_WAITING, maxWaitMs: MAX_TURN_WAIT_MS }),
    newClient: () => new pg.Client(clientOptions({ url, acquireTimeoutMs })),
    reopen: (changes) => openDatabase({ ...options, ...changes }),
    close: () => pool.destroy(),
  };
}

const ATTEMPTS = 4;

/**
 * Runs `work` in one transaction (read committed), when its turn comes: never call it in the work of another. Resolves when it is committed; when `work` fails it is rolled back and the error
 * passed on. After a serialization failure or a deadlock everything is run again, so `work` must not have effects elsewhere.
 * A Fault may mean that the outcome is unknown: the connection was lost during COMMIT.
 */
export async function transaction<T>(db: Database, work: (trx: Knex.Transaction) => Promise<T>): Promise<T> {
  return db.turns.take(() => attempts(db, work));
}

const pools = new WeakMap<Knex, Pool>();

const lasts = new WeakMap<Knex.Transaction, Promise<unknown>[]>();

/**
 * One of the last statements of a transaction: they and the COMMIT are sent together, and the transaction resolves when all are done,
 * or rejects with the error of the first that failed. Call it without awaiting what it is given, and ask nothing of `trx` that hangs on
 * its outcome.
 */
export function lastly(trx: Knex.Transaction, statement: Promise<unknown>): void {
  const last = lasts.get(trx) ?? [];
  last.push(statement);
  lasts.set(trx, last);
  // Whoever waits for the transaction is told.
  statement.catch(() => undefined);
}

/** Waits for what was sent as the last of a transaction, which goes on after all. Rejects with the error of the first that failed. */
export async function settled(trx: Knex.Transaction): Promise<void> {
  const last = lasts.get(trx) ?? [];
  lasts.delete(trx);
  await sentTogether(last);
}

/** A transaction whose connection is at hand for prepared statements too. */
async function onOneConnection<T>(knex: Knex, work: (trx: Knex.Transaction) => Promise<T>): Promise<T> {
  const pool = pools.get(knex);
  if (pool === undefined) {
    return knex.transaction(async (trx) => {
      const result = await work(trx);
      await settled(trx);
      return result;
    });
  }
  const connection = await pool.acquire().promise;
  let begun: Knex.Transaction | undefined;
  const last = async () => begun && settled(begun);
  try {
    const result = await knex.transaction(
      (trx) => {
        begun = trx;
        runPreparedBy(trx, (statement) => runOn(connection, statement));
        return work(trx);
      },
      { connection },
    );
    // What the server never got to see did not keep it from committing the rest, and is told all the same.
    await last();
    return result;
  } catch (error) {
    // Why it could not be committed, or why what came after failed, where it was for that.
    await last();
    throw error;
  } finally {
    pool.release(connection);
  }
}

async function attempts<T>(db: Database, work: (trx: Knex.Transaction) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await onOneConnection(db.knex, work);
    } catch (error) {
      if (!isRetryable(error)) {
        throw error;
      }
      if (attempt === ATTEMPTS) {
        throw new Fault('the transaction collided with others every time', { cause: statementError(error) });
      }
      await sleep(attempt * 10);
    }
  }
}

function ignore(): void {}
