/** Transactions that either commit or report their failure. */

import { setTimeout as sleep } from 'node:timers/promises';
import type { Knex } from 'knex';
import { Fault } from '../domain/errors.ts';
import type { TenantId } from '../domain/ids.ts';
import type { Database } from './database.ts';
import { isRetryable, statementError } from './faults.ts';

export type Transaction = Knex.Transaction;

const ATTEMPTS = 4;

/**
 * Runs `work` in one transaction (read committed) when a permit is free: never call it in the work of another. Resolves
 * after the commit. If `work` rejects, the transaction is rolled back and the error passed on. After a serialization
 * failure or a deadlock `work` runs again, so it must not have effects elsewhere. A Fault may mean that the outcome is
 * unknown: the connection was lost during COMMIT.
 */
export async function transaction<T>(db: Database, work: (trx: Transaction) => Promise<T>): Promise<T> {
  return tenantTransaction(db, undefined, work);
}

/**
 * `transaction` that locks rows of one tenant. A tenant's transactions leave permits to others (connection-permits.ts).
 * @param tenant undefined: no such bound
 */
export async function tenantTransaction<T>(
  db: Database,
  tenant: TenantId | undefined,
  work: (trx: Transaction) => Promise<T>,
): Promise<T> {
  return db.permits.run(() => attempts(db, work), tenant);
}

async function attempts<T>({ knex }: Database, work: (trx: Transaction) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await knex.transaction((trx) => {
        refuseAfterEnd(trx);
        return work(trx);
      });
    } catch (error) {
      if (!isRetryable(error)) throw error;
      if (attempt === ATTEMPTS) {
        throw new Fault('the transaction conflicted with other transactions in every attempt', {
          cause: statementError(error),
        });
      }
      await sleep(attempt * 10);
    }
  }
}

/** knex rejects statements after the end of a transaction with an error of its own; their callers expect a Fault. */
function refuseAfterEnd(trx: Transaction): void {
  const client: Knex.Client = trx.client;
  const { query } = client;
  client.query = (connection, statement) =>
    trx.isCompleted() ? Promise.reject(new Fault('the transaction is over')) : query(connection, statement);
}
