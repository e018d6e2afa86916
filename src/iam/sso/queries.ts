/** Statements of the console's login by an issuer. */

import type { IssuerId, IssuerName, SessionId, TenantId, UserId } from '../../domain/ids.ts';
import type { ClaimRule, IssuerKey, IssuerUsers } from '../../domain/records.ts';
import type { Queryable } from '../../store/queryable.ts';
import type { IssuerSso } from '../issuers/entity.ts';

/** The largest number of issuers that the sign-in page shows. */
export const MAX_SHOWN_ISSUERS = 100;

interface ShownIssuer {
  readonly id: IssuerId;
  readonly label: string;
}

const ENABLED = `i.enabled and i.sso is not null and i.kind = 'oidc' and t.deleted_at is null`;

/** Returns the enabled issuers with a login to the console, by label. @param tenant undefined: of all tenants */
export async function shownIssuers(q: Queryable, tenant: TenantId | undefined): Promise<readonly ShownIssuer[]> {
  const { rows } = await q.raw<{ rows: ShownIssuer[] }>(
    `select i.id, i.sso->>'label' as label from issuers i join tenants t on t.id = i.tenant_id
     where ${ENABLED} and coalesce(i.tenant_id = :tenant, true) order by i.sso->>'label', i.id limit ${MAX_SHOWN_ISSUERS}`,
    { tenant: tenant ?? null },
  );
  return rows;
}

/** An enabled issuer with a login to the console. */
export interface SsoIssuer {
  readonly id: IssuerId;
  readonly tenantId: TenantId;
  readonly name: IssuerName;
  /** The value of `iss`. */
  readonly issuer: string;
  readonly sso: IssuerSso;
  readonly secretSealed: Buffer | null;
  readonly ca: string | null;
  /** Null: its tokens prove no user. */
  readonly users: IssuerUsers | null;
  readonly requiredClaims: readonly ClaimRule[];
  readonly algorithms: readonly string[];
  readonly leewaySeconds: number;
  readonly revokedBefore: Date | null;
  readonly usersSince: Date | null;
  /** The pasted keys. Null: they are fetched. */
  readonly pastedKeys: readonly IssuerKey[] | null;
  /** The keys in use: pasted, or those of the last fetch. */
  readonly keys: readonly IssuerKey[];
  /** The milliseconds since the last attempt to fetch the keys. Null: none, or they are pasted. */
  readonly keysTriedMs: number | null;
  /** Changes with each change of the issuer. */
  readonly version: string;
}

/** @param lock `share` locks it against changes until the transaction ends */
export async function findSsoIssuer(q: Queryable, id: IssuerId, lock?: 'share'): Promise<SsoIssuer | undefined> {
  const { rows } = await q.raw<{ rows: SsoIssuer[] }>(
    `select i.id, i.tenant_id as "tenantId", i.name, i.issuer, i.sso, i.sso_secret_sealed as "secretSealed", i.ca, i.users,
       i.required_claims as "requiredClaims", i.algorithms, i.leeway_seconds as "leewaySeconds",
       i.revoked_before as "revokedBefore", i.users_since as "usersSince", i.jwks->'keys' as "pastedKeys",
       coalesce(i.jwks->'keys', k.keys, '[]') as keys, extract(epoch from i.updated_at)::text as version,
       case when i.jwks is null then extract(epoch from clock_timestamp() - k.attempted_at)::float8 * 1000 end as "keysTriedMs"
     from issuers i join tenants t on t.id = i.tenant_id left join issuer_keys k on k.issuer_id = i.id
     where i.id = :id and ${ENABLED} ${lock === undefined ? '' : 'for share of i'}`,
    { id },
  );
  return rows[0];
}

/**
 * Notes that a value was used. The time must exceed the age up to which the value is accepted.
 * @returns false if it was used before, at any replica
 */
export async function useOnce(q: Queryable, digest: Uint8Array, keptMs: number): Promise<boolean> {
  const { rowCount } = await q.raw<{ rowCount: number }>(
    `insert into sso_used (digest, expires_at) values (:digest, clock_timestamp() + :keptMs * interval '1 millisecond')
     on conflict do nothing`,
    { digest, keptMs },
  );
  return rowCount === 1;
}

/**
 * Notes that a provider ended logins, for the logins of the same names that are under way: their sessions begin after the
 * statement that ends sessions. Call it before that statement, and commit it.
 * @param once the digest of the logout token; a token that was used before notes nothing
 */
export async function noteLogout(
  q: Queryable,
  named: readonly Uint8Array[],
  once: Uint8Array,
  keptMs: number,
): Promise<void> {
  await q.raw(
    `insert into sso_used (digest, expires_at)
     select named, clock_timestamp() + :keptMs * interval '1 millisecond' from unnest(cast(:named as bytea[])) named
     where not exists (select from sso_used where digest = :once)
     on conflict (digest) do update set expires_at = excluded.expires_at`,
    { named, once, keptMs },
  );
}

/**
 * Reports whether a provider ended a login after its state was used. Both are kept for the same time. Call it after the
 * session's commit.
 */
export async function isLoggedOut(q: Queryable, state: Uint8Array, named: readonly Uint8Array[]): Promise<boolean> {
  const { rows } = await q.raw<{ rows: { found: boolean }[] }>(
    `select exists (select from sso_used l join sso_used s on s.digest = :state
       where l.digest = any(cast(:named as bytea[])) and l.expires_at >= s.expires_at) as found`,
    { state, named },
  );
  return rows[0]?.found === true;
}

/** Removes a batch of used values that are rejected for their age, and returns their number. */
export async function pruneUsed(q: Queryable, batch: number): Promise<number> {
  const { rowCount } = await q.raw<{ rowCount: number }>(
    `delete from sso_used where digest in
       (select digest from sso_used where expires_at < statement_timestamp() order by expires_at limit :batch for update skip locked)`,
    { batch },
  );
  return rowCount;
}

/** The user that is linked to a subject of an issuer. */
export interface SsoUser {
  readonly id: UserId;
  readonly tenantActive: boolean;
}

export async function findSsoUser(q: Queryable, issuerId: IssuerId, subject: string): Promise<SsoUser | undefined> {
  const { rows } = await q.raw<{ rows: SsoUser[] }>(
    `select u.id, t.status = 'active' and t.deleted_at is null as "tenantActive"
     from user_identities l join issuers i on i.id = l.issuer_id
       join users u on u.id = l.user_id and u.tenant_id = i.tenant_id join tenants t on t.id = u.tenant_id
     where l.issuer_id = :issuerId and l.subject = :subject`,
    { issuerId, subject },
  );
  return rows[0];
}

/** Stores the sealed ID token of a session that has just begun. */
export async function keepIdToken(q: Queryable, id: SessionId, sealed: Uint8Array): Promise<void> {
  await q.raw('update sessions set sso_id_token_sealed = :sealed where id = :id', { id, sealed });
}

/** The issuer of a session that began with a login to the console by it. */
interface SessionIssuer {
  readonly issuerId: IssuerId;
  readonly idTokenSealed: Buffer | null;
}

/** Returns undefined for every other session. */
export async function issuerOfSession(q: Queryable, id: SessionId): Promise<SessionIssuer | undefined> {
  const { rows } = await q.raw<{ rows: SessionIssuer[] }>(
    `select issuer_id as "issuerId", sso_id_token_sealed as "idTokenSealed" from sessions
     where id = :id and issuer_id is not null and sso_subject is not null`,
    { id },
  );
  return rows[0];
}

/**
 * The sessions that a logout token ends: of one session at the provider, or all of a subject. With both, a session of the
 * subject whose ID token named no session at the provider ends as well, because it may be of this one.
 */
interface LoggedOut {
  readonly issuerId: IssuerId;
  readonly sid: string | undefined;
  readonly subject: string | undefined;
}

/**
 * Ends the active sessions that a logout token names, in the order of their ids, so that two logouts never wait for each
 * other. Returns them with their users.
 */
export async function endSsoSessions(
  q: Queryable,
  { issuerId, sid, subject }: LoggedOut,
): Promise<readonly { readonly id: SessionId; readonly userId: UserId }[]> {
  const { rows } = await q.raw<{ rows: { id: SessionId; userId: UserId }[] }>(
    `with named as (
       select id from sessions where issuer_id = :issuerId and sso_subject is not null and ended_at is null
         ${sid === undefined ? '' : subject === undefined ? 'and sso_sid = :sid' : 'and (sso_sid = :sid or sso_sid is null)'}
         ${subject === undefined ? '' : 'and sso_subject = :subject'}
       order by id for no key update
     )
     update sessions s set ended_at = clock_timestamp() from named where s.id = named.id
     returning s.id, s.user_id as "userId"`,
    { issuerId, ...(sid === undefined ? {} : { sid }), ...(subject === undefined ? {} : { subject }) },
  );
  return rows;
}
