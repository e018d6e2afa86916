/** Who tidies up: one server at a time for each kind. */

import type { Queryable } from '../../store/queryable.ts';

/** First of two keys of a lock; the second is the hash of a kind. Any number does, as long as nothing else in the same database uses it for an advisory lock. */
const UPKEEP_LOCK = 726543492;

/** Upkeep of one kind does not wait for that of another. */
export type UpkeepKind = 'usual' | 'recent_decisions' | 'deleted_roles' | 'ended_keys';

/** True when no other transaction is tidying up this kind; none begins before this one ends. */
export async function takesUpkeep(trx: Queryable, kind: UpkeepKind): Promise<boolean> {
  const { rows } = await trx.raw<{ rows: { held: boolean }[] }>(
    'select pg_try_advisory_xact_lock(?, hashtext(?)) as held',
    [UPKEEP_LOCK, kind],
  );
  return rows[0]?.held === true;
}
