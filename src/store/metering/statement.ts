/** Statements of metering, retried after conflicts, and the values of their rows. */

import { Fault } from '../../domain/errors.ts';
import type { Database } from '../database.ts';
import { isLockTimeout, isRetryable, statementError } from '../faults.ts';
import type { Row, Statement } from '../pool.ts';

export type Queries = Pick<Database, 'query'>;

const ATTEMPTS = 3;

/**
 * Returns the first row. Rejects with a Fault if the database cannot run the statement now, and with its error if it
 * rejects the statement.
 */
export async function firstRow(db: Queries, statement: Statement): Promise<Row> {
  for (let attempt = 1; ; attempt++) {
    try {
      const [row] = await db.query(statement);
      if (row === undefined) throw new Fault('the database returned no rows');
      return row;
    } catch (error) {
      // Statements of other processes on the same rows are no outage. Each kind of statement has a connection of its own, so it
      // may wait again.
      if (!isRetryable(error) && !isLockTimeout(error)) throw error;
      if (attempt === ATTEMPTS)
        throw new Fault('the statement conflicted with other statements in every attempt', {
          cause: statementError(error),
        });
    }
  }
}

export function numberIn(row: Row, column: string): number {
  const value = row[column];
  if (typeof value !== 'number') throw new Fault(`the database returned a row without ${column}`);
  return value;
}

/** Returns rows that were aggregated into JSON. */
export function rowsIn(row: Row, column: string): readonly Row[] {
  const value = row[column];
  if (!Array.isArray(value)) throw new Fault(`the database returned a row without ${column}`);
  return value;
}

export function numbersIn(row: Row, column: string): readonly number[] {
  return rowsIn(row, column).map(Number);
}
