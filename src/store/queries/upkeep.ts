/** Who tidies up: one server at a time. */

import type { Queryable } from '../queryable.ts';

/** Any number does, as long as nothing else in the same database uses it for an advisory lock. */
const UPKEEP_LOCK = 726543492;

/** True when no other transaction is tidying up; none begins before this one ends. */
export async function takesUpkeep(trx: Queryable): Promise<boolean> {
  const { rows } = await trx.raw<{ rows: { held: boolean }[] }>('select pg_try_advisory_xact_lock(?) as held', [UPKEEP_LOCK]);
  return rows[0]?.held === true;
}
