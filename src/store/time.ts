/** The database's clock, for rows whose times must be known before the write. */

import { Fault } from '../domain/errors.ts';
import { type Prepared, runPrepared } from './prepared.ts';
import type { Queryable } from './queryable.ts';

export interface DatabaseTime {
  /** To the microsecond, in a form that PostgreSQL parses. */
  readonly text: string;
  readonly date: Date;
}

const NOW: Prepared = { name: 'database_time', text: 'select t::text as text, t as date from clock_timestamp() t' };

/**
 * Returns the current time, not that of the transaction's start: a transaction that locks a row later has a later time.
 */
export async function databaseTime(q: Queryable): Promise<DatabaseTime> {
  const [now] = await runPrepared<{ text: string; date: Date }>(q, NOW, []);
  if (now === undefined) throw new Fault('the database did not return the time');
  return { text: now.text, date: now.date };
}
