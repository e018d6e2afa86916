/** References to an issuer: keys with a proof, linked users, the roles of its mapping, and sessions. */

import type { IssuerId, KeyDigest, KeyId, RoleName, TenantId, UserId } from '../../domain/ids.ts';
import { USER_STATUS } from '../../store/cache-loader.ts';
import type { Queryable } from '../../store/queryable.ts';
import type { KeyRow } from '../api-keys/entity.ts';

/** The permissions of keys that an issuer's tokens prove. */
export interface KeyGrant extends Pick<KeyRow, 'scopes' | 'resource_constraints'> {
  /** The roles of the keys' owner. Null: the tenant owns the keys. */
  readonly roles: readonly RoleName[] | null;
}

/** The keys of the user `:except` do not count. */
const GRANTS = `select distinct scopes, resource_constraints,
    case when user_id is not null then array(
      select distinct role_name from user_roles r where r.user_id = k.user_id order by role_name) end as roles
  from api_keys k where user_id is distinct from :except`;

/**
 * Returns the different grants of an issuer's keys that work now, at most `most`.
 * @param except the keys of this user do not count
 */
export async function provedGrants(
  q: Queryable,
  issuer: IssuerId,
  except: UserId | undefined,
  most: number,
): Promise<readonly KeyGrant[]> {
  const { rows } = await q.raw<{ rows: KeyGrant[] }>(
    `${GRANTS} and proof_issuer_id = :issuer and revoked_at is null
       and (expires_at is null or expires_at > statement_timestamp())
     limit :most`,
    { issuer, except: except ?? null, most },
  );
  return rows;
}

/** Returns the different grants of these keys, without those of deleted users. @param except as for `provedGrants` */
export async function grantsOfKeys(
  q: Queryable,
  keys: readonly KeyId[],
  except: UserId | undefined,
): Promise<readonly KeyGrant[]> {
  const { rows } = await q.raw<{ rows: KeyGrant[] }>(
    `${GRANTS} and id = any(cast(:keys as text[])) and (user_id is null or exists (select from users u where u.id = k.user_id))`,
    { keys, except: except ?? null },
  );
  return rows;
}

/** Returns the roles, from every source, of the users that are linked to the issuer. @param except does not count */
export async function rolesOfLinkedUsers(
  q: Queryable,
  issuer: IssuerId,
  except: UserId | undefined,
): Promise<readonly RoleName[]> {
  const { rows } = await q.raw<{ rows: { role_name: RoleName }[] }>(
    `select distinct r.role_name from user_identities l join user_roles r on r.user_id = l.user_id
     where l.issuer_id = :issuer and l.user_id is distinct from :except order by r.role_name`,
    { issuer, except: except ?? null },
  );
  return rows.map(({ role_name }) => role_name);
}

/** The numbers of keys that are not revoked, and of linked subjects, both up to `most`. */
export async function countReferences(
  q: Queryable,
  issuer: IssuerId,
  most: number,
): Promise<{ readonly keys: number; readonly links: number }> {
  const { rows } = await q.raw<{ rows: { keys: number; links: number }[] }>(
    `select
       (select count(*)::int from (select from api_keys where proof_issuer_id = :issuer and revoked_at is null limit :most) k) as keys,
       (select count(*)::int from (select from user_identities where issuer_id = :issuer limit :most) l) as links`,
    { issuer, most },
  );
  return rows[0] ?? { keys: 0, links: 0 };
}

/** Rows of one statement, so that each stays within the time limit of a statement. */
const AT_ONCE = 1_000;

async function inBatches(q: Queryable, sql: string, issuer: IssuerId): Promise<void> {
  for (let rowCount = AT_ONCE; rowCount === AT_ONCE; ) {
    ({ rowCount } = await q.raw<{ rowCount: number }>(sql, { issuer, most: AT_ONCE }));
  }
}

/**
 * Revokes the keys of an issuer that are not revoked, and takes the proof from all of them, because the issuer is
 * deleted.
 */
export async function revokeProvedKeys(q: Queryable, issuer: IssuerId): Promise<void> {
  await inBatches(
    q,
    `update api_keys set revoked_at = coalesce(revoked_at, clock_timestamp()), updated_at = clock_timestamp(),
       proof_issuer_id = null, proof_subject = null, proof_claims = null, proof_is_glob = false
     where id in (select id from api_keys where proof_issuer_id = :issuer limit :most)`,
    issuer,
  );
}

/** Removes the links of users to an issuer, and the roles that its mapping gave. */
export async function unlinkUsers(q: Queryable, issuer: IssuerId): Promise<void> {
  await inBatches(
    q,
    `with unlinked as (
       delete from user_identities where (issuer_id, subject) in (
         select issuer_id, subject from user_identities where issuer_id = :issuer limit :most)
       returning user_id
     ), taken as (
       delete from user_roles where source = 'issuer:' || cast(:issuer as text) and user_id in (select user_id from unlinked)
     )
     select from unlinked`,
    issuer,
  );
}

/** The sessions that a change of an issuer ends. */
export type EndedSessions =
  /** All sessions that began with the issuer's tokens. */
  | 'all'
  /** The sessions of users. */
  | 'users'
  /** The sessions that began with a login to the console. */
  | 'logins';

const WHICH: Readonly<Record<EndedSessions, string>> = {
  all: 'true',
  users: 'user_id is not null',
  logins: 'sso_subject is not null',
};

/** SQL for the sessions of `:issuer` that a change ends. Expired sessions stay as they are. */
const active = (which: EndedSessions): string =>
  `issuer_id = :issuer and ended_at is null and expires_at > statement_timestamp() and ${WHICH[which]}`;

/**
 * Ends sessions that began with a token of the issuer, which the transaction has locked. With more than 1,000, it only
 * records that they have ended, and `endRowsOfIssuer` writes their rows later.
 */
export async function endSessionsOfIssuer(q: Queryable, issuer: IssuerId, which: EndedSessions): Promise<void> {
  const { rowCount } = await q.raw<{ rowCount: number }>(
    `update sessions set ended_at = clock_timestamp()
     where id in (select id from sessions where ${active(which)} limit :most)`,
    { issuer, most: AT_ONCE },
  );
  if (rowCount < AT_ONCE) return;
  // The clock may be behind that of a database which failed.
  await q.raw(
    `insert into ended_issuer_sessions (issuer_id, which, begun_until)
     select :issuer, :which, greatest(clock_timestamp(), max(created_at)) from sessions
     where issuer_id = :issuer and ended_at is null
     on conflict (issuer_id, which) do update set begun_until = greatest(excluded.begun_until, ended_issuer_sessions.begun_until)`,
    { issuer, which },
  );
}

/**
 * Writes the end of a batch of the sessions that `ended_issuer_sessions` names, and removes the name after the last one. It
 * skips a session whose row another transaction locks, so a batch never waits for a lock while it holds others.
 * @returns the number of written and removed rows
 */
export async function endRowsOfIssuer(q: Queryable, sessions: number): Promise<number> {
  // A random one, so that locked sessions of one issuer do not delay the others.
  const { rows } = await q.raw<{ rows: { issuer: IssuerId; which: EndedSessions; until: string }[] }>(
    'select issuer_id as issuer, which, begun_until::text as until from ended_issuer_sessions order by random() limit 1',
  );
  const [named] = rows;
  if (named === undefined) return 0;
  const over = `${active(named.which)} and created_at <= cast(:until as timestamptz)`;
  const { rowCount: ended } = await q.raw<{ rowCount: number }>(
    `update sessions set ended_at = cast(:until as timestamptz)
     where id in (select id from sessions where ${over} limit :sessions for no key update skip locked)`,
    { ...named, sessions },
  );
  const { rowCount: removed } = await q.raw<{ rowCount: number }>(
    `delete from ended_issuer_sessions where issuer_id = :issuer and which = :which
       and begun_until = cast(:until as timestamptz) and not exists (select from sessions where ${over})`,
    { ...named },
  );
  return ended + removed;
}

/** Deletes the issuers of a deleted tenant, which has no users, and no keys that work. */
export async function deleteIssuersOfTenant(q: Queryable, tenant: TenantId): Promise<void> {
  const { rows } = await q.raw<{ rows: { id: IssuerId }[] }>(
    'select id from issuers where tenant_id = :tenant order by id for update',
    { tenant },
  );
  for (const { id } of rows) await revokeProvedKeys(q, id);
  await q('issuers').where({ tenant_id: tenant }).delete();
}

/** A key that a token may prove, or a user, for the answer of a test. */
interface ReferencedKey {
  readonly id: KeyId;
  /** The description of a key without a name. */
  readonly name: string;
  readonly disabled: boolean;
  /** Neither revoked nor expired, and its owner is active. */
  readonly usable: boolean;
}

/** Returns keys of the tenant by their digests. */
export async function keysOfProofs(
  q: Queryable,
  tenant: TenantId,
  digests: readonly KeyDigest[],
): Promise<readonly ReferencedKey[]> {
  if (digests.length === 0) return [];
  const { rows } = await q.raw<{ rows: ReferencedKey[] }>(
    `select k.id, coalesce(k.name, k.description) as name, k.disabled_at is not null as disabled,
       k.revoked_at is null and (k.expires_at is null or k.expires_at > statement_timestamp())
         and (k.user_id is null or exists (select from users u where u.id = k.user_id and ${USER_STATUS} = 'active')) as usable
     from api_keys k where k.tenant_id = :tenant and k.digest = any(cast(:digests as bytea[])) order by k.id`,
    { tenant, digests: digests.map((digest) => Buffer.from(digest, 'hex')) },
  );
  return rows;
}
