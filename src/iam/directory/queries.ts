/**
 * The daily lookups of key owners: those that are due, the process that claims each, and the persons removed within a
 * day.
 */

import type { TenantId, UserId } from '../../domain/ids.ts';
import { type Prepared, runPrepared } from '../../store/prepared.ts';
import type { Queryable } from '../../store/queryable.ts';
import type { DirectoryIdentity } from '../users/directory-queries.ts';

export interface ClaimedLookup {
  readonly userId: UserId;
  readonly tenantId: TenantId;
  readonly identity: DirectoryIdentity;
}

interface ClaimedLookups {
  readonly lookups: readonly ClaimedLookup[];
  /** The last user of the walk; undefined if it reached the end, so that the next walk begins again. */
  readonly walkedTo: UserId | undefined;
}

interface LookupClaim {
  /** Names of the reachable directories. */
  readonly directories: readonly string[];
  /** The user after which the walk continues; undefined = from the first user. */
  readonly after: UserId | undefined;
  /** The largest number of users to read. */
  readonly maxWalked: number;
  /** The largest number of lookups to claim. */
  readonly maxClaimed: number;
  /** The time in which no process can claim the same lookup again. */
  readonly claimMs: number;
}

/** The first of the two keys of a lock. The second is the hash of a directory's name. */
const REMOVALS_LOCK = 726_543_494;

/**
 * The user's last scheduled time. It is a second of the day of the database's clock that depends on the user only, so
 * that the lookups are spread over the day, regardless of the times at which the users were created.
 */
const LAST_SCHEDULED = `day.now - make_interval(secs =>
  mod(mod(floor(extract(epoch from day.now))::bigint - hashtext(w.id), 86400) + 86400, 86400)::float8)`;

const STATEMENTS = {
  claim: {
    name: 'claim_directory_lookups',
    // Materialized, and with arrays and lateral limits, so that no plan reads more users, keys or links than those of the
    // walk.
    text: `with walked as materialized (
        select id, directory, directory_checked_at as checked, directory_claimed_at as claimed from users
        where directory is not null and id > $2 order by id limit $3
      ), waiting as materialized (
        select w.id from walked w cross join (select clock_timestamp() as now) day
        where w.directory = any($1::text[])
          and (w.checked is null or (w.checked < day.now - interval '12 hours' and w.checked < ${LAST_SCHEDULED}))
          and (w.claimed is null or w.claimed < day.now - $5::float8 * interval '1 millisecond')
      ), due as materialized (
        select w.id from waiting w cross join lateral (
          (select 1 from api_keys k
           where k.user_id = w.id and k.revoked_at is null and (k.expires_at is null or k.expires_at > statement_timestamp()) limit 1)
          union all (select 1 from user_identities l where l.user_id = w.id limit 1) limit 1
        ) credential order by w.id limit $4
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
  readonly id: UserId | null;
  readonly tenant_id: TenantId;
  readonly directory: string;
  readonly directory_id: string;
  readonly walked_to: UserId | null;
}

/**
 * Continues the walk through the users of directories, in the order of their ids, and claims the lookups that are due:
 * those of users that own an active key or are linked to a subject of an issuer, and for whom the directory has answered
 * neither since their scheduled time nor within 12 hours. It skips locked rows.
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
  return {
    lookups: rows.flatMap(({ id, tenant_id, directory, directory_id }) =>
      id === null ? [] : { userId: id, tenantId: tenant_id, identity: { directory, stableId: directory_id } },
    ),
    walkedTo: rows[0]?.walked_to ?? undefined,
  };
}

/**
 * Reports whether the directory has answered for the user, at a login or a refresh, after the lookup was claimed: that
 * answer is newer.
 */
export async function isOvertaken(q: Queryable, id: UserId): Promise<boolean> {
  const [row] = await runPrepared<{ overtaken: boolean | null }>(q, STATEMENTS.overtaken, [id]);
  return row?.overtaken === true;
}

export interface RemovalCounts {
  /** The number of persons for whom the directory answered within a day. */
  readonly checked: number;
  /**
   * The number of them that were suspended within the day because the directory did not have them, or had them in
   * another tenant.
   */
  readonly removed: number;
}

/** Counts a directory's removals. Other transactions that count them wait until this one ends. */
export async function lockRemovals(trx: Queryable, directory: string): Promise<RemovalCounts> {
  await runPrepared(trx, STATEMENTS.lockRemovals, [directory]);
  const [row] = await runPrepared<{ checked: number; removed: number }>(trx, STATEMENTS.removals, [directory]);
  return { checked: row?.checked ?? 0, removed: row?.removed ?? 0 };
}
