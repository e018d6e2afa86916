/**
 * Sessions and the refresh tokens that keep them alive. All times are the database's clock, which all replicas share. Whoever
 * changes a session's tokens holds the session's row first, so two uses of one token never overlap.
 */

import type { RoleName, SessionId, TenantId, UserId } from '../../domain/ids.ts';
import { type AuditRow, auditedBy, auditValues } from '../../store/audit-rows.ts';
import { storedSession, storedTenant, storedUser } from '../../store/paging.ts';
import { runPrepared } from '../../store/prepared.ts';
import type { Queryable } from '../../store/queryable.ts';
import { forgivenBy, knownBy, type LoginAttempt, returnedBy } from '../auth/failure-queries.ts';
import type { DirectoryIdentity } from '../users/directory-queries.ts';
import { PASSWORD_VERSION } from '../users/password-queries.ts';

export interface NewSession {
  readonly id: SessionId;
  /** From now to the session's absolute end. */
  readonly lifetimeMs: number;
  /** True when its refresh tokens travel in a cookie, and only there. */
  readonly cookie: boolean;
  readonly address: string | undefined;
  readonly userAgent: string | undefined;
}

export interface NewRefreshToken {
  readonly digest: Uint8Array;
  readonly sessionId: SessionId;
  /** What its successor will be derived with. */
  readonly nonce: Uint8Array;
}

/** What a correct login comes with, whoever it is. */
export interface Beginning {
  readonly session: NewSession;
  readonly token: Pick<NewRefreshToken, 'digest' | 'nonce'>;
  /** The attempt that this is: account and address get it back, and the address is known to the account for 30 days. */
  readonly attempt: LoginAttempt;
  /** Also forgets the failures of the account from the address before it. */
  readonly forgives: boolean;
  /** Without actor and target: both are whose session it is. */
  readonly audit: AuditRow;
}

/** Most active sessions of one user. A login beyond ends the one that was not used for longest. */
export const MAX_SESSIONS = 1000;
/** Most refreshes of one session: more than one a minute for 30 days. Then it is over. */
export const MAX_REFRESHES = 50_000;

/**
 * @param held a statement that gives the user's id, and holds its row; its values begin with `$22`
 * @param account SQL of what failed logins of a user of a directory are counted by, or null
 */
const begins = (name: string, held: string, attemptReturned: typeof forgivenBy, account: 'null' | '$9::bytea') => ({
  name,
  text: `with held as (${held}), begun as (
      insert into sessions (id, user_id, expires_at, cookie, address, user_agent)
      select $1::text, id, clock_timestamp() + $2::float8 * interval '1 millisecond', $3::boolean, $4::text, $5::text from held
      returning id, user_id
    ), surplus as (
      update sessions set ended_at = clock_timestamp() where id in (
        select s.id from sessions s join held on s.user_id = held.id
        where s.ended_at is null and s.expires_at > statement_timestamp()
        order by s.last_used_at desc, s.id desc offset ${MAX_SESSIONS - 1}
      )
    ), first as (
      insert into refresh_tokens (digest, session_id, nonce, issued_at) select $6::bytea, id, $7::bytea, clock_timestamp() from begun
    ), logged_in as (
      insert into user_logins (user_id, last_login_at, account) select user_id, clock_timestamp(), ${account} from begun
      on conflict (user_id) do update set
        last_login_at = greatest(user_logins.last_login_at, excluded.last_login_at), account = excluded.account
    ), ${attemptReturned('begun', 8)}, ${knownBy('begun', 9)}, ${auditedBy('begun', 11, 'begun.user_id')}
    select user_id from begun`,
});

const PROVED = `select id from users where id = $22::text and status = 'active' and ${PASSWORD_VERSION} = $23::text for share`;
const SETTLED = `select u.id from users u join tenants t on t.id = u.tenant_id
  where u.directory = $22::text and u.directory_id = $23::text and u.tenant_id = $24::text
    and u.status = 'active' and t.status = 'active' and t.deleted_at is null
    and u.directory_suspension is null and u.directory_checked_at > statement_timestamp() - interval '12 hours'
    and (u.email is not distinct from $25::text and u.email_conflict is null
      or u.email_conflict = $25::text and exists (select from users o where o.email = $25::text))
    and u.name = $26::text
    and array(select role_name from user_roles where user_id = u.id and source = 'directory' order by role_name collate "C") = $27::text[]
  for share of u`;
const BEGIN_FORGIVING = begins('begin_session', PROVED, forgivenBy, 'null');
const BEGIN = begins('begin_session_returning', PROVED, returnedBy, '$9::bytea');
const BEGIN_SETTLED = begins('begin_settled_session', SETTLED, returnedBy, '$9::bytea');

function valuesOf({ session, token, attempt, audit }: Beginning): readonly unknown[] {
  const { id, lifetimeMs, cookie, address = null, userAgent = null } = session;
  return [
    ...[id, lifetimeMs, cookie, address, userAgent],
    ...[token.digest, token.nonce, attempt.pair, attempt.account, attempt.address],
    ...auditValues(audit),
  ];
}

/** Whose session begins. */
export interface Proved {
  readonly id: UserId;
  /** Of the password that was checked; empty for a user whose password is a directory's. */
  readonly password_version: string;
}

/**
 * Begins a session with its first refresh token, takes the attempt back and writes it down: all in one statement, because
 * next to the hash of the password the round trips are what a login costs.
 * @returns false when a reset of the password or a deactivation was faster: then nothing is written
 */
export async function beginSession(
  q: Queryable,
  { id, password_version }: Proved,
  beginning: Beginning,
): Promise<boolean> {
  const rows = await runPrepared(q, beginning.forgives ? BEGIN_FORGIVING : BEGIN, [
    ...valuesOf(beginning),
    id,
    password_version,
  ]);
  return rows.length === 1;
}

/** A user of a directory as the directory says. */
export interface UpToDateUser {
  readonly identity: DirectoryIdentity;
  readonly tenantId: TenantId;
  readonly email: string | null;
  readonly name: string;
  /** Given by the directory; each once, sorted. */
  readonly roles: readonly RoleName[];
}

/**
 * Like `beginSession`, for a user of a directory who is known and was checked there within 12 hours, may come in, and is kept exactly as the directory says, so that nothing
 * else has to be written: as in nearly all logins. The account's failures before it stay counted.
 * @returns whose session it is; undefined when anything is otherwise: then nothing is written
 */
export async function beginUnchangedSession(
  q: Queryable,
  user: UpToDateUser,
  beginning: Beginning,
): Promise<UserId | undefined> {
  const { identity, tenantId, email, name, roles } = user;
  const values = [...valuesOf(beginning), identity.directory, identity.stableId, tenantId, email, name, roles];
  const [row] = await runPrepared<{ user_id: string }>(q, BEGIN_SETTLED, values);
  return row && storedUser(row.user_id);
}

async function insertRefreshToken(q: Queryable, token: NewRefreshToken): Promise<void> {
  await q.raw(
    `insert into refresh_tokens (digest, session_id, nonce, issued_at) values (:digest, :sessionId, :nonce, clock_timestamp())`,
    { digest: token.digest, sessionId: token.sessionId, nonce: token.nonce },
  );
}

/** Locks the session that a refresh token belongs to until the transaction ends; false when the token is unknown. */
export async function lockSessionOfToken(q: Queryable, digest: Uint8Array): Promise<boolean> {
  const result = await q.raw<{ rows: unknown[] }>(
    `select s.id from sessions s join refresh_tokens r on r.session_id = s.id where r.digest = :digest for no key update of s`,
    { digest },
  );
  return result.rows.length > 0;
}

/** Everything about a refresh token that decides what its use leads to, as of one instant. */
export interface RefreshFacts {
  readonly sessionId: SessionId;
  readonly userId: UserId;
  readonly tenantId: TenantId;
  readonly nonce: Uint8Array;
  readonly cookie: boolean;
  readonly used: boolean;
  /** Used so recently that another use may be the same one again: a lost answer, a second tab. */
  readonly usedJustNow: boolean;
  readonly successorUnused: boolean;
  /** Of a used token. */
  readonly successorDigest: Uint8Array | undefined;
  readonly sessionEnded: boolean;
  /** Neither the session's absolute end nor the idle time has passed, nor was it refreshed too often. */
  readonly withinLifetimes: boolean;
  readonly userActive: boolean;
  readonly tenantActive: boolean;
  /** Who the user is in its directory; undefined for local ones. */
  readonly identity: DirectoryIdentity | undefined;
}

interface RefreshRow {
  readonly session_id: string;
  readonly user_id: string;
  readonly tenant_id: string;
  readonly nonce: Uint8Array;
  readonly cookie: boolean;
  readonly used: boolean;
  readonly used_just_now: boolean;
  readonly successor_unused: boolean;
  readonly successor_digest: Uint8Array | null;
  readonly session_ended: boolean;
  readonly within_lifetimes: boolean;
  readonly user_active: boolean;
  readonly tenant_active: boolean;
  readonly directory: string | null;
  readonly directory_id: string | null;
}

/** Call it with the session's row locked, in a statement of its own: only then does it see what the last holder of the lock did. */
export async function refreshFacts(
  q: Queryable,
  digest: Uint8Array,
  times: { readonly idleMs: number; readonly graceMs: number },
): Promise<RefreshFacts | undefined> {
  const result = await q.raw<{ rows: RefreshRow[] }>(
    `select s.id as session_id, u.id as user_id, t.id as tenant_id, r.nonce, s.cookie,
       r.used_at is not null as used,
       coalesce(r.used_at > c.now - :graceMs * interval '1 millisecond', false) as used_just_now,
       (n.digest is not null and n.used_at is null) as successor_unused, r.successor_digest,
       s.ended_at is not null as session_ended,
       (s.expires_at > c.now and s.refreshes < ${MAX_REFRESHES} and coalesce(n.issued_at, r.issued_at) > c.now - :idleMs * interval '1 millisecond') as within_lifetimes,
       u.status = 'active' as user_active,
       (t.status = 'active' and t.deleted_at is null) as tenant_active,
       u.directory, u.directory_id
     from refresh_tokens r
     join sessions s on s.id = r.session_id
     join users u on u.id = s.user_id
     join tenants t on t.id = u.tenant_id
     left join refresh_tokens n on n.digest = r.successor_digest
     cross join (select clock_timestamp() as now) c
     where r.digest = :digest`,
    { digest, graceMs: times.graceMs, idleMs: times.idleMs },
  );
  const row = result.rows[0];
  if (row === undefined) return undefined;
  return {
    sessionId: storedSession(row.session_id),
    userId: storedUser(row.user_id),
    tenantId: storedTenant(row.tenant_id),
    nonce: row.nonce,
    cookie: row.cookie,
    used: row.used,
    usedJustNow: row.used_just_now,
    successorUnused: row.successor_unused,
    successorDigest: row.successor_digest ?? undefined,
    sessionEnded: row.session_ended,
    withinLifetimes: row.within_lifetimes,
    userActive: row.user_active,
    tenantActive: row.tenant_active,
    identity:
      row.directory === null || row.directory_id === null
        ? undefined
        : { directory: row.directory, stableId: row.directory_id },
  };
}

/** Uses a token up: its successor takes over, and the session was last used now. */
export async function succeedToken(q: Queryable, digest: Uint8Array, successor: NewRefreshToken): Promise<void> {
  await insertRefreshToken(q, successor);
  await q.raw(
    'update refresh_tokens set used_at = clock_timestamp(), successor_digest = :successor where digest = :digest',
    {
      digest,
      successor: successor.digest,
    },
  );
  await q.raw('update sessions set last_used_at = clock_timestamp(), refreshes = refreshes + 1 where id = :id', {
    id: successor.sessionId,
  });
}

/** Ends one session; true when it had not ended before. */
export async function endSession(q: Queryable, id: SessionId): Promise<boolean> {
  const result = await q.raw<{ rowCount: number }>(
    'update sessions set ended_at = clock_timestamp() where id = :id and ended_at is null',
    { id },
  );
  return result.rowCount === 1;
}

/** Ends all sessions of a user but `except`; answers how many. A session that has expired stays so, and there may be any number of them. */
export async function endSessionsOfUser(q: Queryable, userId: UserId, except?: SessionId): Promise<number> {
  const result = await q.raw<{ rowCount: number }>(
    `update sessions set ended_at = clock_timestamp()
     where user_id = :userId and ended_at is null and expires_at > statement_timestamp() and id <> :except`,
    { userId, except: except ?? '' },
  );
  return result.rowCount;
}

/** The session that a refresh token belongs to, used or not, and the tenant of its user. */
export async function sessionOfToken(
  q: Queryable,
  digest: Uint8Array,
): Promise<{ readonly id: SessionId; readonly cookie: boolean; readonly tenantId: TenantId } | undefined> {
  const result = await q.raw<{ rows: { id: string; cookie: boolean; tenant_id: string }[] }>(
    `select s.id, s.cookie, u.tenant_id from refresh_tokens r
     join sessions s on s.id = r.session_id join users u on u.id = s.user_id where r.digest = :digest`,
    { digest },
  );
  const row = result.rows[0];
  return row && { id: storedSession(row.id), cookie: row.cookie, tenantId: storedTenant(row.tenant_id) };
}

/** Whose session it is, and of which tenant; undefined when there is no such session. */
export async function sessionOwner(
  q: Queryable,
  id: SessionId,
): Promise<{ readonly userId: UserId; readonly tenantId: TenantId } | undefined> {
  const result = await q.raw<{ rows: { user_id: string; tenant_id: string }[] }>(
    'select s.user_id, u.tenant_id from sessions s join users u on u.id = s.user_id where s.id = :id',
    { id },
  );
  const row = result.rows[0];
  return row && { userId: storedUser(row.user_id), tenantId: storedTenant(row.tenant_id) };
}

/**
 * Sessions that are over for more than a day, the longest first: their tokens are refused, known or not. The time is the
 * statement's, which an index can be searched by.
 */
const OVER = `select id from sessions where coalesce(ended_at, expires_at) < statement_timestamp() - interval '1 day'
  order by coalesce(ended_at, expires_at) limit :sessions`;

/**
 * Takes away one batch of sessions that are over, and their refresh tokens; a session with many tokens goes over several batches. The
 * tokens of a session that lives all stay: a stolen one is known for what it is however old it is.
 * @returns how many rows are gone
 */
export async function pruneSessions(
  q: Queryable,
  batch: { readonly sessions: number; readonly tokens: number },
): Promise<number> {
  const { rowCount: tokens } = await q.raw<{ rowCount: number }>(
    `delete from refresh_tokens where digest in
       (select r.digest from refresh_tokens r where r.session_id in (${OVER}) limit :tokens)`,
    batch,
  );
  const { rowCount: sessions } = await q.raw<{ rowCount: number }>(
    `delete from sessions where id in
       (select o.id from (${OVER}) o where not exists (select from refresh_tokens r where r.session_id = o.id))`,
    { sessions: batch.sessions },
  );
  return tokens + sessions;
}
