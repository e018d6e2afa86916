/** The database's clock, for rows whose times are told before they are written. */

import { Fault } from '../domain/errors.ts';
import { type Prepared, runPrepared } from './prepared.ts';
import type { Queryable } from './queryable.ts';

export interface DatabaseTime {
  /** To the microsecond, as PostgreSQL reads it. */
  readonly text: string;
  readonly date: Date;
}

const NOW: Prepared = { name: 'database_time', text: 'select t::text as text, t as date from clock_timestamp() t' };

/**
 * As it is now, not when the transaction began: of two who hold a row one after the other, the second has the later
 * time.
 */
export async function databaseTime(q: Queryable): Promise<DatabaseTime> {
  const [now] = await runPrepared<{ text: string; date: Date }>(q, NOW, []);
  if (now === undefined) throw new Fault('the database did not return the time');
  return { text: now.text, date: now.date };
}
