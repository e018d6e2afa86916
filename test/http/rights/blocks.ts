import type { Database } from '../../../src/store/database.ts';

/** Resolves with true when a request waits for the transaction of this backend. */
export async function blocks(outside: Database, pid: number): Promise<boolean> {
  const { rows } = await outside.knex.raw<{ rows: unknown[] }>(
    `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and :pid = any(pg_blocking_pids(pid))`,
    { pid },
  );
  return rows.length > 0;
}
