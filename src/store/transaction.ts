/** Transactions that are either done or reported. */

import { setTimeout as sleep } from 'node:timers/promises';
import { Fault } from '../domain/errors.ts';
import type { TenantId } from '../domain/ids.ts';
import type { Database } from './database.ts';
import { isRetryable, statementError } from './faults.ts';
import { type PooledConnection, runOn } from './pool.ts';
import { runPreparedBy } from './prepared.ts';
import type { Bindings, Queryable } from './queryable.ts';
import { sentTogether } from './together.ts';

/** What of knex is used: a statement that is run on a connection in hand. */
interface Statements {
  raw<R>(sql: string, bindings: Bindings): Promise<R> & { connection(connection: PooledConnection): Promise<R> };
}

/**
 * What the work of a transaction asks its statements of. No knex: knex makes two hundred methods for each transaction, a sixth of all
 * that a write allocates. When the transaction is over, whatever is still asked of it fails with a Fault.
 */
export class Transaction implements Queryable {
  readonly isTransaction = true;
  readonly #knex: Statements;
  readonly #connection: PooledConnection;
  #last: Promise<unknown>[] = [];

  constructor(knex: Statements, connection: PooledConnection) {
    this.#knex = knex;
    this.#connection = connection;
    runPreparedBy(this, (statement) => runOn(connection, statement));
  }

  async raw<R = unknown>(sql: string, bindings: Bindings = []): Promise<R> {
    return this.#knex.raw<R>(sql, bindings).connection(this.#connection);
  }

  /**
   * One of the last statements: they and the COMMIT are sent together, and the transaction resolves when all are done, or rejects with
   * the error of the first that failed. Call it without awaiting what it is given, and ask nothing that hangs on its outcome.
   */
  lastly(statement: Promise<unknown>): void {
    this.#last.push(statement);
    // Whoever waits for the transaction is told.
    statement.catch(() => undefined);
  }

  /** Waits for what was sent as the last, and goes on after all. Rejects with the error of the first that failed. */
  async settled(): Promise<void> {
    const last = this.#last;
    this.#last = [];
    await sentTogether(last);
  }
}

const ATTEMPTS = 4;

/**
 * Runs `work` in one transaction (read committed), when its turn comes: never call it in the work of another. Resolves when it is
 * committed; when `work` fails it is rolled back and the error passed on. After a serialization failure or a deadlock everything is run
 * again, so `work` must not have effects elsewhere. A Fault may mean that the outcome is unknown: the connection was lost during COMMIT.
 * @param tenant whose rows the transaction locks. The transactions of one tenant leave permits to others (connection-permits.ts). Default: no such bound
 */
export async function transaction<T>(
  db: Database,
  work: (trx: Transaction) => Promise<T>,
  tenant?: TenantId,
): Promise<T> {
  return db.permits.run(() => attempts(db, work), tenant);
}

async function attempts<T>(db: Database, work: (trx: Transaction) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await once(db, work);
    } catch (error) {
      if (!isRetryable(error)) {
        throw error;
      }
      if (attempt === ATTEMPTS) {
        throw new Fault('the transaction conflicted with other transactions in every attempt', {
          cause: statementError(error),
        });
      }
      await sleep(attempt * 10);
    }
  }
}

async function once<T>({ knex, pool }: Database, work: (trx: Transaction) => Promise<T>): Promise<T> {
  const connection = await pool.acquire().promise;
  const trx = new Transaction(knex, connection);
  try {
    connection.begin();
    const result = await work(trx);
    await runOn(connection, { text: 'COMMIT' });
    // What the server never got to see did not keep it from committing the rest, and is told all the same.
    await trx.settled();
    return result;
  } catch (error) {
    // Where it was not begun, is over, or the connection is gone, there is nothing to roll back; failing to would only hide the error.
    await runOn(connection, { text: 'ROLLBACK' }).catch(() => undefined);
    // Why it could not be committed, or why what came after failed, where it was for that.
    await trx.settled();
    throw error;
  } finally {
    pool.release(connection);
  }
}
