/** The daily lookups of key owners: which are due, which process does each, and how many persons were removed within a day. */

import type { TenantId, UserId } from '../../domain/ids.ts';
import { storedTenant, storedUser } from '../../store/paging.ts';
import { type Prepared, runPrepared } from '../../store/prepared.ts';
import type { Queryable } from '../../store/queryable.ts';
import type { DirectoryIdentity } from '../users/directory-queries.ts';

/** A lookup that this process has claimed. */
export interface ClaimedLookup {
  readonly userId: UserId;
  readonly tenantId: TenantId;
  readonly identity: DirectoryIdentity;
}

export interface ClaimedLookups {
  readonly lookups: readonly ClaimedLookup[];
  /** The user up to whom the walk came; undefined when it passed the last one and begins again. */
  readonly walkedTo: UserId | undefined;
}

export interface LookupClaim {
  /** Names of the directories that can be asked. */
  readonly directories: readonly string[];
  /** Where the walk goes on; undefined = from the first user. */
  readonly after: UserId | undefined;
  /** Users that are read at most. */
  readonly maxWalked: number;
  /** Lookups that are claimed at most. */
  readonly maxClaimed: number;
  /** How long a claim keeps other processes, and this one, from claiming the same lookup. */
  readonly claimMs: number;
}

/** First of the two keys of a lock; the second is the hash of a directory's name. */
const REMOVALS_LOCK = 726_543_494;

/**
 * When the user's turn last came: at a second of the day of the database's clock that depends on the user only, so that the lookups are
 * spread over the day whenever the users were created.
 */
const LAST_TURN = `day.now - make_interval(secs =>
  mod(mod(floor(extract(epoch from day.now))::bigint - hashtext(w.id), 86400) + 86400, 86400)::float8)`;

const STATEMENTS = {
  claim: {
    name: 'claim_directory_lookups',
    // Materialized, and with arrays and a lateral limit, so that no plan reads more users or keys than those that were walked.
    text: `with walked as materialized (
        select id, directory, directory_checked_at as checked, directory_claimed_at as claimed from users
        where directory is not null and id > $2 order by id limit $3
      ), waiting as materialized (
        select w.id from walked w cross join (select clock_timestamp() as now) day
        where w.directory = any($1::text[])
          and (w.checked is null or (w.checked < day.now - interval '12 hours' and w.checked < ${LAST_TURN}))
          and (w.claimed is null or w.claimed < day.now - $5::float8 * interval '1 millisecond')
      ), due as materialized (
        select w.id from waiting w cross join lateral (
          select from api_keys k
          where k.user_id = w.id and k.revoked_at is null and (k.expires_at is null or k.expires_at > statement_timestamp()) limit 1
        ) key order by w.id limit $4
      ), held as materialized (
        select u.id from users u where u.id = any(array(select id from due))
          and (u.directory_claimed_at is null or u.directory_claimed_at < clock_timestamp() - $5::float8 * interval '1 millisecond')
        for update of u skip locked
      ), mine as (
        update users u set directory_claimed_at = clock_timestamp() where u.id = any(array(select id from held))
        returning u.id, u.tenant_id, u.directory, u.directory_id
      )
      select m.id, m.tenant_id, m.directory, m.directory_id,
        case when (select count(*) from due) = $4 then (select max(id) from due)
          when (select count(*) from walked) = $3 then (select max(id) from walked) end as walked_to
      from (select) as always left join mine m on true order by m.id`,
  },
  overtaken: {
    name: 'is_lookup_overtaken',
    text: 'select directory_checked_at > directory_claimed_at as overtaken from users where id = $1',
  },
  lockRemovals: {
    name: 'lock_directory_removals',
    text: `select pg_advisory_xact_lock(${REMOVALS_LOCK}, hashtext($1))`,
  },
  removals: {
    name: 'count_directory_removals',
    text: `select count(*)::int as checked,
        (count(*) filter (where directory_suspension in ('removed', 'tenant_changed') and directory_suspended_at > day.since))::int as removed
      from users cross join (select clock_timestamp() - interval '1 day' as since) day
      where directory = $1 and directory_checked_at > day.since`,
  },
} as const satisfies Readonly<Record<string, Prepared>>;

interface ClaimedRow {
  readonly id: string | null;
  readonly tenant_id: string;
  readonly directory: string;
  readonly directory_id: string;
  readonly walked_to: string | null;
}

/**
 * Walks on through the users of directories, in the order of their ids, and claims the lookups that are due: of users that own a key in
 * force, for whom the directory has not answered since their turn of the day came, nor within 12 hours. A locked row is left to the next walk.
 */
export async function claimLookups(q: Queryable, claim: LookupClaim): Promise<ClaimedLookups> {
  const { directories, after, maxWalked, maxClaimed, claimMs } = claim;
  const rows = await runPrepared<ClaimedRow>(q, STATEMENTS.claim, [
    directories,
    after ?? '',
    maxWalked,
    maxClaimed,
    claimMs,
  ]);
  const walkedTo = rows[0]?.walked_to ?? undefined;
  return {
    lookups: rows.flatMap(({ id, tenant_id, directory, directory_id }) =>
      id === null
        ? []
        : [
            {
              userId: storedUser(id),
              tenantId: storedTenant(tenant_id),
              identity: { directory, stableId: directory_id },
            },
          ],
    ),
    walkedTo: walkedTo === undefined ? undefined : storedUser(walkedTo),
  };
}

/** Reports whether the directory answered for the user, at a login or a refresh, after the lookup was claimed: that answer is newer. */
export async function isOvertaken(q: Queryable, id: UserId): Promise<boolean> {
  const [row] = await runPrepared<{ overtaken: boolean | null }>(q, STATEMENTS.overtaken, [id]);
  return row?.overtaken === true;
}

export interface Removals {
  /** Persons for whom the directory answered within a day. */
  readonly checked: number;
  /** Those among them who were suspended within the day because they were not found, or found to belong to another tenant. */
  readonly removed: number;
}

/** Counts a directory's removals. Other transactions that count them wait until this one ends. */
export async function lockRemovals(trx: Queryable, directory: string): Promise<Removals> {
  await runPrepared(trx, STATEMENTS.lockRemovals, [directory]);
  const [row] = await runPrepared<{ checked: number; removed: number }>(trx, STATEMENTS.removals, [directory]);
  return { checked: row?.checked ?? 0, removed: row?.removed ?? 0 };
}
