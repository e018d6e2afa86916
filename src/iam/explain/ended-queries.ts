/** Statements on the end of credentials. Only explanations use them, and no decision. */

import type { KeyDigest, KeyId, SessionId, TenantId, UserId } from '../../domain/ids.ts';
import { SESSION_ENDED_AT, USER_STATUS } from '../../store/cache-loader.ts';
import type { Queryable } from '../../store/queryable.ts';

export interface UserEnd {
  readonly active: boolean;
  /**
   * The time of the deactivation or of the suspension by the directory; null for an active user or if it is unknown.
   */
  readonly since: Date | null;
}

export interface KeyEnd {
  readonly id: KeyId;
  readonly tenantId: TenantId;
  readonly userId: UserId | undefined;
  /** The time at which a rotation stops this secret; null for the key's current secret. */
  readonly stoppedAt: Date | null;
  readonly revokedAt: Date | null;
  readonly disabledAt: Date | null;
  readonly expiresAt: Date | null;
  /** Undefined if the key has no owner in its tenant. */
  readonly owner: UserEnd | undefined;
}

export interface SessionEnd {
  /** Undefined if the user does not exist. */
  readonly user: UserEnd | undefined;
  /** The time at which the session ended or ends; null if it does not exist. */
  readonly endsAt: Date | null;
}

/** The time for which the digest of a rotated secret is stored after the secret stopped. */
const RETENTION = '30 days';
/** The number of digests of one key. A rotation removes the oldest ones. */
const MAX_DIGESTS = 100;

const SINCE = 'case when u.directory_suspension is null then u.deactivated_at else u.directory_suspended_at end';

interface KeyEndRow extends Omit<KeyEnd, 'userId' | 'owner'> {
  readonly user_id: UserId | null;
  readonly owner_status: string | null;
  readonly owner_since: Date | null;
}

/**
 * Returns the key whose secret has this digest, or had it in the last 30 days; undefined if there is none. If an import
 * gave the digest of an old secret to a new key, it returns the new key.
 */
export async function keyEnd(q: Queryable, digest: KeyDigest): Promise<KeyEnd | undefined> {
  const { rows } = await q.raw<{ rows: KeyEndRow[] }>(
    `select k.id, k.tenant_id as "tenantId", k.user_id, found.stopped_at as "stoppedAt", k.revoked_at as "revokedAt",
       k.disabled_at as "disabledAt", k.expires_at as "expiresAt",
       case when u.id is not null then ${USER_STATUS} end as owner_status, ${SINCE} as owner_since
     from (
       select id, cast(null as timestamptz) as stopped_at from api_keys where digest = decode(:digest, 'hex')
       union all
       select key_id, stopped_at from rotated_key_digests
       where digest = decode(:digest, 'hex') and stopped_at > clock_timestamp() - interval '${RETENTION}'
     ) found
     join api_keys k on k.id = found.id
     left join users u on u.id = k.user_id and u.tenant_id = k.tenant_id
     order by found.stopped_at nulls first limit 1`,
    { digest },
  );
  const [row] = rows;
  if (row === undefined) return undefined;
  const { user_id, owner_status, owner_since, ...key } = row;
  return { ...key, userId: user_id ?? undefined, owner: userEnd(owner_status, owner_since) };
}

/** @param session undefined: only the user is read */
export async function sessionEnd(q: Queryable, user: UserId, session: SessionId | undefined): Promise<SessionEnd> {
  const { rows } = await q.raw<{ rows: { status: string | null; since: Date | null; ends_at: Date | null }[] }>(
    `select case when u.id is not null then ${USER_STATUS} end as status, ${SINCE} as since,
       least(${SESSION_ENDED_AT}, s.expires_at) as ends_at
     from (select) one left join users u on u.id = :user
     left join sessions s on s.id = cast(:session as text) and s.user_id = u.id`,
    { user, session: session ?? null },
  );
  const [row] = rows;
  return { user: userEnd(row?.status ?? null, row?.since ?? null), endsAt: row?.ends_at ?? null };
}

/** Returns the time at which a session of the key ended or ends; null if it does not exist. */
export async function keySessionEnd(q: Queryable, key: KeyId, session: SessionId): Promise<Date | null> {
  const { rows } = await q.raw<{ rows: { ends_at: Date }[] }>(
    `select least(${SESSION_ENDED_AT}, s.expires_at) as ends_at from sessions s where s.id = :session and s.api_key_id = :key`,
    { key, session },
  );
  return rows[0]?.ends_at ?? null;
}

function userEnd(status: string | null, since: Date | null): UserEnd | undefined {
  return status === null ? undefined : { active: status === 'active', since };
}

/**
 * Stores the digest of a key's current secret before a rotation replaces it. The key's row must be locked.
 * @param until the time at which the secret stops; null: now
 */
export async function rememberDigest(q: Queryable, id: KeyId, until: Date | null): Promise<void> {
  await q.raw(
    `with ended as (
       update rotated_key_digests set stopped_at = clock_timestamp() where key_id = :id and stopped_at > clock_timestamp()
     ), removed as (
       delete from rotated_key_digests where digest in (
         select digest from rotated_key_digests where key_id = :id order by stopped_at desc offset ${MAX_DIGESTS - 1})
     )
     insert into rotated_key_digests (digest, key_id, stopped_at)
     select digest, id, coalesce(cast(:until as timestamptz), clock_timestamp()) from api_keys where id = :id
     on conflict (digest) do update set key_id = excluded.key_id, stopped_at = excluded.stopped_at`,
    { id, until },
  );
}

/** Deletes up to `batch` expired digests, the oldest first. Returns their number. */
export async function pruneRotatedDigests(q: Queryable, batch: number): Promise<number> {
  const { rowCount } = await q.raw<{ rowCount: number }>(
    `delete from rotated_key_digests where digest in (
       select digest from rotated_key_digests where stopped_at <= clock_timestamp() - interval '${RETENTION}'
       order by stopped_at limit :batch for update skip locked)`,
    { batch },
  );
  return rowCount;
}
