/** Removes old changes from the feed. */

import type { Database } from './database.ts';
import { transaction } from './transaction.ts';

/** Admits one server at a time. Nothing else in the same database may use this number for an advisory lock. */
const LOCK = 726543483;
const BATCH = 5000;
const MAX_BATCHES = 200;

/**
 * Deletes changes older than `keepMs`, in small transactions, and records the last deleted one, so that a server that
 * has not read them flushes its caches. Returns the number of deleted changes, or 0 if another server prunes.
 */
export async function pruneChanges(db: Database, keepMs: number): Promise<number> {
  let total = 0;
  for (let batch = 0; batch < MAX_BATCHES; batch++) {
    const gone = await pruneBatch(db, keepMs);
    total += gone;
    if (gone < BATCH) break;
  }
  return total;
}

async function pruneBatch(db: Database, keepMs: number): Promise<number> {
  return transaction(db, async (trx) => {
    const lock: { rows: { held: boolean }[] } = await trx.raw('select pg_try_advisory_xact_lock(?) as held', [LOCK]);
    if (lock.rows[0]?.held !== true) return 0;
    const pruned: { rows: { gone: number }[] } = await trx.raw(
      `with oldest as (
         select seq, at from changes where seq > (select pruned_through from feed_state) order by seq limit ?
       ), gone as (
         delete from changes
         where seq in (select seq from oldest where at < clock_timestamp() - make_interval(secs => ?::float8))
         returning seq
       ), marked as (
         update feed_state set pruned_through = greatest(pruned_through, (select max(seq) from gone))
         where exists (select from gone)
       )
       select count(*) as gone from gone`,
      [BATCH, keepMs / 1000],
    );
    return pruned.rows[0]?.gone ?? 0;
  });
}
