/** Both the database and a transaction run statements: with the query builder, or as `raw` SQL with named bindings. */

import type { Knex } from 'knex';
import { Fault } from '../domain/errors.ts';

/**
 * Statements fail with a Fault if the database does not answer in time, and with pg's DatabaseError if it rejects them.
 */
export type Queryable = Knex;

/** Returns a value for a JSON column. pg itself writes a list as an array of PostgreSQL. */
export function jsonb(q: Queryable, value: unknown): Knex.Raw {
  return q.raw('cast(? as jsonb)', [value === null ? null : JSON.stringify(value)]);
}

/** Returns the row that a statement has written. Throws a Fault if it wrote none. */
export function writtenRow<Row>([row]: readonly Row[]): Row {
  if (row === undefined) throw new Fault('a statement that writes a row returned none');
  return row;
}
