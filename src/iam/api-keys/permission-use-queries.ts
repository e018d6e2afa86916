/** The last day of each permission that a key used. Gates write it with the decisions that they record. */

import type { KeyId } from '../../domain/ids.ts';
import type { NamedQuery } from '../../store/prepared.ts';
import type { Queryable } from '../../store/queryable.ts';
import { type PlatformPermission, UNUSED_DAYS } from './platform-permissions.ts';

const DAY_MS = 86_400_000;

/** Returns the first UTC day whose uses count at a time: `2026-11-01`. */
function usedSince(nowMs: number): string {
  return new Date(nowMs - UNUSED_DAYS * DAY_MS).toISOString().slice(0, 10);
}

/**
 * Keys `k` of at least `UNUSED_DAYS` days that cover a permission of the platform without a use since `usedSince`. The
 * uses of a key are read once, and compared with the permissions one by one, because OFFSET keeps the subquery apart.
 */
export const WIDER_THAN_USED = `k.created_at <= :existedSince and exists (
  select from (
    select array(select u.permission from key_permissions_used u
      where u.key_id = k.id and u.last_used_on >= cast(:usedSince as date)) as used
    offset 0) of_key
  cross join jsonb_to_recordset(cast(:platform as jsonb)) as p(patterns text[], recorded text[])
  where k.scopes && p.patterns and not of_key.used && p.recorded)`;

/** Returns the bindings of `WIDER_THAN_USED`. */
export function widerBindings(platform: readonly PlatformPermission[], now: Date): NamedQuery['bindings'] {
  return {
    existedSince: new Date(now.getTime() - UNUSED_DAYS * DAY_MS),
    usedSince: usedSince(now.getTime()),
    platform: JSON.stringify(platform.map(({ patterns, recorded }) => ({ patterns, recorded }))),
  };
}

/** Returns the days of the last recorded uses of a key since `usedSince`, by the recorded permission. */
export async function lastUses(q: Queryable, key: KeyId, nowMs: number): Promise<ReadonlyMap<string, string>> {
  const { rows } = await q.raw<{ rows: { permission: string; day: string }[] }>(
    `select permission, to_char(last_used_on, 'YYYY-MM-DD') as day from key_permissions_used
     where key_id = :key and last_used_on >= cast(:since as date)`,
    { key, since: usedSince(nowMs) },
  );
  return new Map(rows.map(({ permission, day }) => [permission, day]));
}

/** Removes a batch of uses that no longer count. Returns their number. */
export async function pruneUses(q: Queryable, batch: number): Promise<number> {
  const { rowCount } = await q.raw<{ rowCount: number }>(
    `delete from key_permissions_used where (key_id, permission) in (
       select key_id, permission from key_permissions_used
       where last_used_on < cast(statement_timestamp() at time zone 'UTC' as date) - ${UNUSED_DAYS + 1}
       order by last_used_on limit :batch for update skip locked)`,
    { batch },
  );
  return rowCount;
}
