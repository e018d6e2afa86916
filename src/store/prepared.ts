/** Statements that each connection prepares once, so that PostgreSQL does not parse and plan them again. */

import { createHash } from 'node:crypto';
import type pg from 'pg';
import { type PooledConnection, runOn } from './pool.ts';
import type { Queryable } from './queryable.ts';
import type { Transaction } from './transaction.ts';

/** A statement with a name of its own, and `$1`, `$2` for its values. */
export interface Prepared {
  readonly name: string;
  readonly text: string;
}

/** Runs a prepared statement, in `q`'s transaction if it is one. Returns the rows as pg decodes them. */
export async function runPrepared<R extends pg.QueryResultRow>(
  q: Queryable,
  { name, text }: Prepared,
  values: readonly unknown[],
): Promise<readonly R[]> {
  // knex replaces each `?` by a position, except after a backslash.
  const { rows } = await q.raw<{ rows: R[] }>(text.replaceAll('?', '\\?')).options({ name, values });
  return rows;
}

export type Call = readonly [statement: Prepared, ...values: readonly unknown[]];

/**
 * Runs statements of a transaction in one round trip: it sends all of them before PostgreSQL answers the first.
 * PostgreSQL runs them in order, and each sees the effects of those before it. Use it only while locks are held that
 * other transactions wait for.
 * @returns the rows of each. Rejects with the error of the first that failed, after all of them ended.
 */
export async function runPipelined<R extends pg.QueryResultRow>(
  trx: Transaction,
  calls: readonly Call[],
): Promise<readonly (readonly R[])[]> {
  const connection: PooledConnection = await trx.client.acquireConnection();
  const answers = calls.map(([statement, ...values]) => runOn<R>(connection, { ...statement, values }));
  await Promise.allSettled(answers);
  return Promise.all(answers);
}

type Value = string | number | boolean | Date | null;

/**
 * A statement with `:name` for its values, composed for the filters of a list. The number of possible texts is limited:
 * a text contains no value from a request.
 */
export interface NamedQuery {
  readonly sql: string;
  readonly bindings: Readonly<Record<string, Value>>;
}

/** Runs a query as a prepared statement with one plan for all values: planning takes longer than reading a page. */
export async function runNamedQuery<R extends pg.QueryResultRow>(
  q: Queryable,
  query: NamedQuery,
): Promise<readonly R[]> {
  const sql = hideValuesFromPlanner(query);
  const name = `query_${createHash('sha256').update(sql).digest('hex').slice(0, 32)}`;
  const { rows } = await q.raw<{ rows: R[] }>(sql, query.bindings).options({ name });
  return rows;
}

/** Counts the rows of a query, up to `most`. The query does not need an order. */
export async function countUpTo(q: Queryable, { sql, bindings }: NamedQuery, most: number): Promise<number> {
  const counted = `select count(*)::float8 as rows from (select from (${sql}) listed limit :most) counted`;
  const [row] = await runNamedQuery<{ rows: number }>(q, { sql: counted, bindings: { ...bindings, most } });
  return row?.rows ?? 0;
}

/** Returns the SQL with each value in a subquery, so that the plan does not depend on the values. */
export function hideValuesFromPlanner({ sql, bindings }: NamedQuery): string {
  return sql.replaceAll(/(?<!:):(\w+)/g, (_, name: string) => `(select cast(:${name} as ${typeOf(bindings[name])}))`);
}

/** A value that may be null has type text. */
function typeOf(value: Value | undefined): string {
  if (typeof value === 'number') return 'bigint';
  if (typeof value === 'boolean') return 'boolean';
  return value instanceof Date ? 'timestamptz' : 'text';
}
