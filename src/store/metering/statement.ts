/** One statement of metering: run again where it only met others. */

import { Fault } from '../../domain/errors.ts';
import type { Database } from '../database.ts';
import { isRetryable, statementError } from '../faults.ts';
import type { Row, Statement } from '../pool.ts';

export type Queries = Pick<Database, 'query'>;

const ATTEMPTS = 3;

/** The first row. Fails with a Fault when the store cannot do it now, with the server's own error when it never will. */
export async function firstRow(db: Queries, statement: Statement): Promise<Row> {
  for (let attempt = 1; ; attempt++) {
    try {
      const [row] = await db.query(statement);
      if (row === undefined) throw new Fault('the database returned no rows');
      return row;
    } catch (error) {
      if (!isRetryable(error)) throw error;
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

/** Rows that were aggregated into JSON. */
export function rowsIn(row: Row, column: string): readonly Row[] {
  const value = row[column];
  if (!Array.isArray(value)) throw new Fault(`the database returned a row without ${column}`);
  return value;
}

/** Texts of a row that was aggregated into JSON. */
export function textsIn(row: Row, column: string): readonly string[] {
  const value = row[column];
  if (!Array.isArray(value)) throw new Fault(`the database returned a row without ${column}`);
  return value.map(String);
}

/** Whole numbers of a row that was aggregated into JSON. */
export function numbersIn(row: Row, column: string): readonly number[] {
  const value = row[column];
  if (!Array.isArray(value)) throw new Fault(`the database returned a row without ${column}`);
  return value.map(Number);
}
