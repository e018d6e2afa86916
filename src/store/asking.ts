/**
 * Statements that are put together for what a list is asked for, with names for their values. Each is prepared under what it says, and
 * planned once for all values: to plan one anew takes longer than what it finds.
 */

import { createHash } from 'node:crypto';
import type pg from 'pg';
import { type Prepared, runPrepared } from './prepared.ts';
import type { Queryable } from './queryable.ts';

type Value = string | number | boolean | Date | null;

/** A statement with `:name` for its values. There are only so many texts: no value is written into one but of a closed set. */
export interface Asking {
  readonly sql: string;
  readonly bindings: Readonly<Record<string, Value>>;
}

interface Written extends Prepared {
  /** The names of `$1`, `$2` and so on. */
  readonly names: readonly string[];
}

const written = new Map<string, Written>();

/** Rows as they come. Fails like knex. */
export async function runAsking<R extends pg.QueryResultRow>(
  q: Queryable,
  { sql, bindings }: Asking,
): Promise<readonly R[]> {
  let statement = written.get(sql);
  if (statement === undefined) {
    statement = write(sql, bindings);
    written.set(sql, statement);
  }
  return runPrepared<R>(
    q,
    statement,
    statement.names.map((name) => bindings[name]),
  );
}

/** Counts the rows of a statement, up to `most`. The statement's order, if it has one, costs time and changes nothing. */
export async function countUpTo(q: Queryable, { sql, bindings }: Asking, most: number): Promise<number> {
  const counted = `select count(*)::float8 as rows from (select from (${sql}) listed limit :most) counted`;
  const [row] = await runAsking<{ rows: number }>(q, { sql: counted, bindings: { ...bindings, most } });
  return row?.rows ?? 0;
}

/** The statement with its values hidden: as it is planned, once and for all. */
export function hidingValues({ sql, bindings }: Asking): string {
  return sql.replaceAll(NAMES, (_, name: string) => `(select cast(:${name} as ${typeOf(bindings[name])}))`);
}

const NAMES = /(?<!:):(\w+)/g;

function write(sql: string, bindings: Asking['bindings']): Written {
  const names: string[] = [];
  const text = hidingValues({ sql, bindings }).replaceAll(NAMES, (_, name: string) => {
    if (!names.includes(name)) names.push(name);
    return `$${names.indexOf(name) + 1}`;
  });
  return { name: `asking_${createHash('sha256').update(text).digest('hex').slice(0, 32)}`, text, names };
}

/** A value that may be null is a text. */
function typeOf(value: Value | undefined): string {
  if (typeof value === 'number') return 'bigint';
  if (typeof value === 'boolean') return 'boolean';
  return value instanceof Date ? 'timestamptz' : 'text';
}
