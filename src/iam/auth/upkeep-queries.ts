/** Locks of upkeep: one server at a time for each kind of upkeep. */

import type { Queryable } from '../../store/queryable.ts';

/**
 * The first of two keys of a lock. The second is the hash of a kind. The number is arbitrary, but no other advisory
 * lock of the database may use it.
 */
const UPKEEP_LOCK = 726543492;

/** Upkeep of one kind does not wait for that of another. */
export type UpkeepKind = 'usual' | 'recent_decisions' | 'deleted_roles' | 'ended_keys';

/** Returns true if no other transaction runs this kind of upkeep. None starts before this transaction ends. */
export async function takesUpkeep(trx: Queryable, kind: UpkeepKind): Promise<boolean> {
  const { rows } = await trx.raw<{ rows: { held: boolean }[] }>(
    'select pg_try_advisory_xact_lock(?, hashtext(?)) as held',
    [UPKEEP_LOCK, kind],
  );
  return rows[0]?.held === true;
}
