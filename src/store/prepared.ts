/**
 * Statements that are prepared once on each connection, past knex: what is asked thousands of times a second is neither parsed, nor
 * planned, nor built anew each time. Whoever has a knex, of the database or of a transaction, can ask them.
 */

import type pg from 'pg';
import type { Statement } from './pool.ts';
import type { Queryable } from './queryable.ts';

/** A statement with a name of its own, and `$1`, `$2` for its values. */
export interface Prepared {
  readonly name: string;
  readonly text: string;
}

type Runner = <R extends pg.QueryResultRow>(statement: Statement) => Promise<readonly R[]>;

const runners = new WeakMap<Queryable, Runner>();

/** From now on statements asked of `q` go this way. */
export function runPreparedBy(q: Queryable, run: Runner): void {
  runners.set(q, run);
}

/** Whether what is asked of `q` sees what its transaction did; a knex that nobody told us of is taken for one. */
export function isTransaction(q: Queryable): boolean {
  return q.isTransaction === true || !runners.has(q);
}

/** Rows as they come. Fails like knex. */
export async function runPrepared<R extends pg.QueryResultRow>(
  q: Queryable,
  statement: Prepared,
  values: readonly unknown[],
): Promise<readonly R[]> {
  const run = runners.get(q);
  return run === undefined ? throughKnex<R>(q, statement, values) : run<R>({ ...statement, values });
}

/** For a knex that nobody told us of, such as a transaction within another. */
async function throughKnex<R>(q: Queryable, { text }: Prepared, values: readonly unknown[]): Promise<readonly R[]> {
  const bindings = Object.fromEntries(values.map((value, i) => [`p${i + 1}`, value]));
  const { rows } = await q.raw<{ rows: R[] }>(text.replaceAll('?', '\\?').replace(/\$(\d+)/g, ':p$1'), bindings);
  return rows;
}
