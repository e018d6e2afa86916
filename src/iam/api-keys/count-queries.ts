/** How many keys an owner has. Each number is an upper bound until a statement counts the keys. */

import type { KeyId, TenantId, UserId } from '../../domain/ids.ts';
import { type Queryable, writtenRow } from '../../store/queryable.ts';
import type { KeyTable } from './entity.ts';
import { ACTIVE_NOW } from './queries.ts';

/** The tenant, and the user that owns the keys; null = the tenant itself. */
export interface KeysOwner {
  readonly tenant: TenantId;
  readonly user: UserId | null;
}

/** Upper bounds; null = not counted yet. */
interface KeyCounts {
  readonly active: number | null;
  /** The keys that were created within the period of the limit of new keys. */
  readonly created: number | null;
}

const keysOf = (q: Queryable, { tenant, user }: KeysOwner) =>
  q<KeyTable>('api_keys').where({ tenant_id: tenant, user_id: user });

/**
 * Adds keys to the numbers of an owner, and returns the sums. Callers that add keys to one owner wait for each other
 * until the transaction ends. A count after it sees what the previous callers wrote.
 */
export async function addToKeyCounts(q: Queryable, owner: KeysOwner, added: number): Promise<KeyCounts> {
  const { rows } = await q.raw<{ rows: KeyCounts[] }>(
    `insert into key_counts as counts (owner) values (:id)
     on conflict (owner) do update set active = counts.active + :added, created = counts.created + :added
     returning active, created`,
    { id: idOf(owner), added },
  );
  return writtenRow(rows);
}

/** Replaces numbers of an owner after `addToKeyCounts`. */
export async function replaceKeyCounts(q: Queryable, owner: KeysOwner, counts: Partial<KeyCounts>): Promise<void> {
  await q('key_counts')
    .where({ owner: idOf(owner) })
    .update(counts);
}

function idOf({ tenant, user }: KeysOwner): UserId | TenantId {
  return user ?? tenant;
}

export async function countActiveKeys(q: Queryable, owner: KeysOwner, most: number): Promise<number> {
  // No column, so that an index alone has all that the statement reads.
  const active = keysOf(q, owner).whereRaw(ACTIVE_NOW).limit(most).select(q.raw('1'));
  const [row] = await q.count<{ active: string }[]>({ active: '*' }).from(active.as('counted'));
  return Number(row?.active ?? 0);
}

interface NewKeys {
  readonly count: number;
  /** The age of the oldest counted key; null = no key was counted. */
  readonly oldest_age_ms: number | null;
}

/**
 * Counts the newest keys of an owner, up to `most`.
 * @param since the least id of a key that is created at the beginning of the period
 */
export async function countNewKeys(q: Queryable, owner: KeysOwner, most: number, since: KeyId): Promise<NewKeys> {
  // Ids begin with the time, so the newest keys are first.
  const newest = keysOf(q, owner).where('id', '>', since).orderBy('id', 'desc').limit(most).select('created_at');
  const { rows } = await q.raw<{ rows: NewKeys[] }>(
    `select cast(count(*) as int) as count,
       cast(extract(epoch from clock_timestamp() - min(created_at)) * 1000 as float8) as oldest_age_ms
     from (:newest) newest`,
    { newest },
  );
  return writtenRow(rows);
}
