/**
 * Sessions and their refresh tokens. All times are those of the database's clock, which all replicas share. A
 * transaction that changes the tokens of a session locks the session's row first, so that two uses of one token never
 * overlap.
 */

import type { IssuerId, KeyId, SessionId, TenantId, UserId } from '../../domain/ids.ts';
import { type AuditRow, auditedBy, auditValues } from '../../store/audit-rows.ts';
import { SESSION_ENDED_AT } from '../../store/cache-loader.ts';
import { runPrepared } from '../../store/prepared.ts';
import type { Queryable } from '../../store/queryable.ts';
import { forgivenBy, knownBy, type LoginAttempt, returnedBy } from '../auth/failure-queries.ts';
import type { DirectoryIdentity, NewDirectoryUser } from '../users/directory-queries.ts';
import type { UserRow } from '../users/entity.ts';
import { PASSWORD_VERSION } from '../users/password-queries.ts';
import type { SessionRow, SessionTable } from './entity.ts';

export interface NewSession {
  readonly id: SessionId;
  /** The time until the session's absolute end. */
  readonly lifetimeMs: number;
  /** True if the refresh tokens are sent in a cookie, and only there. */
  readonly cookie: boolean;
  readonly address: string | undefined;
  readonly userAgent: string | undefined;
}

export interface NewRefreshToken {
  readonly digest: Uint8Array;
  readonly sessionId: SessionId;
  /** The server derives the successor with it. */
  readonly nonce: Uint8Array;
}

/** A correct login, for every kind of user. */
export interface Beginning {
  readonly session: NewSession;
  readonly token: Pick<NewRefreshToken, 'digest' | 'nonce'>;
  /**
   * The counted attempt. It is returned to account and address, and the address is known to the account for 30 days.
   */
  readonly attempt: LoginAttempt;
  /** True if the login also removes the earlier failures of the account from the address. */
  readonly forgives: boolean;
  /** Without actor and target: both are the user. */
  readonly audit: AuditRow;
}

/** The largest number of active sessions of one user. Another login ends the least recently used one. */
export const MAX_SESSIONS = 1000;
/**
 * The largest number of refreshes of one session: more than one per minute for 30 days. After that, the session ends.
 */
export const MAX_REFRESHES = 50_000;

/**
 * @param held a statement that returns the user's id, and locks its row. Its values begin with `$22`.
 * @param account SQL of the subject that counts the failed logins of a directory's user, or null
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

/** The user whose session begins. */
export interface Proved {
  readonly id: UserId;
  /** The version of the checked password. Empty for a user of a directory. */
  readonly password_version: string;
}

/**
 * Begins a session with its first refresh token, returns the attempt and writes the audit row. One statement does all
 * of it, because round trips are the largest cost of a login after the hash of the password.
 * @returns false if a reset of the password or a deactivation has committed before; then nothing is written
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

/** A directory's current statements about a user. Its roles are those from the directory, each once, sorted. */
export type UpToDateUser = Omit<NewDirectoryUser, 'id'>;

/**
 * Like `beginSession`, for a user that the directory confirmed within the last 12 hours and whose stored data equals
 * the directory's. No other row has to change then, which is the case in nearly all logins. Earlier failures of the
 * account still count.
 * @returns the user's id; undefined if any condition does not hold: then nothing is written
 */
export async function beginUnchangedSession(
  q: Queryable,
  user: UpToDateUser,
  beginning: Beginning,
): Promise<UserId | undefined> {
  const { identity, tenantId, email, name, roles } = user;
  const values = [...valuesOf(beginning), identity.directory, identity.stableId, tenantId, email, name, roles];
  const [row] = await runPrepared<{ user_id: UserId }>(q, BEGIN_SETTLED, values);
  return row?.user_id;
}

interface RefreshTokenTable {
  readonly digest: Uint8Array;
  readonly session_id: SessionId;
  readonly nonce: Uint8Array;
  readonly issued_at: Date;
  readonly used_at: Date | null;
  readonly successor_digest: Uint8Array | null;
}

const sessions = (q: Queryable) => q<SessionTable>('sessions');
const refreshTokens = (q: Queryable) => q<RefreshTokenTable>('refresh_tokens');

/** Locks the session of a refresh token until the transaction ends. @returns false if the token is unknown */
export async function lockSessionOfToken(q: Queryable, digest: Uint8Array): Promise<boolean> {
  const ofToken = refreshTokens(q).where({ digest }).select('session_id');
  return (await sessions(q).whereIn('id', ofToken).forNoKeyUpdate().first('id')) !== undefined;
}

/** The state of a refresh token, its session, its user and its tenant at one instant. */
export interface RefreshFacts {
  readonly sessionId: SessionId;
  readonly userId: UserId;
  readonly tenantId: TenantId;
  readonly nonce: Uint8Array;
  readonly cookie: boolean;
  readonly used: boolean;
  /** Used within the grace period, so that another use may be a repetition: a lost response, a second tab. */
  readonly usedJustNow: boolean;
  readonly successorUnused: boolean;
  /** Null for a token that is not used. */
  readonly successorDigest: Uint8Array | null;
  readonly sessionEnded: boolean;
  /** The session has not reached its absolute end, its idle time or its number of refreshes. */
  readonly withinLifetimes: boolean;
  /** False also if the issuer by which the session began no longer accepts logins. */
  readonly userActive: boolean;
  readonly tenantActive: boolean;
  /** Null for local users. */
  readonly identity: DirectoryIdentity | null;
}

/**
 * Call it after `lockSessionOfToken`, as a statement of its own, so that it sees what the previous holder of the lock
 * wrote.
 */
export async function refreshFacts(
  q: Queryable,
  digest: Uint8Array,
  times: { readonly idleMs: number; readonly graceMs: number },
): Promise<RefreshFacts | undefined> {
  const { rows } = await q.raw<{ rows: RefreshFacts[] }>(
    `select s.id as "sessionId", u.id as "userId", t.id as "tenantId", r.nonce, s.cookie,
       r.used_at is not null as used,
       coalesce(r.used_at > c.now - :graceMs * interval '1 millisecond', false) as "usedJustNow",
       (n.digest is not null and n.used_at is null) as "successorUnused", r.successor_digest as "successorDigest",
       ${SESSION_ENDED_AT} is not null as "sessionEnded",
       (s.expires_at > c.now and s.refreshes < ${MAX_REFRESHES}
         and coalesce(n.issued_at, r.issued_at) > c.now - :idleMs * interval '1 millisecond') as "withinLifetimes",
       (u.status = 'active' and (s.sso_subject is null or coalesce(i.enabled, false))) as "userActive",
       (t.status = 'active' and t.deleted_at is null) as "tenantActive",
       case when u.directory is not null then json_build_object('directory', u.directory, 'stableId', u.directory_id) end as identity
     from refresh_tokens r
     join sessions s on s.id = r.session_id
     join users u on u.id = s.user_id
     join tenants t on t.id = u.tenant_id
     left join issuers i on i.id = s.issuer_id
     left join refresh_tokens n on n.digest = r.successor_digest
     cross join (select clock_timestamp() as now) c
     where r.digest = :digest`,
    { digest, ...times },
  );
  return rows[0];
}

/** Replaces a token by its successor, and sets the last use of the session. */
export async function succeedToken(q: Queryable, digest: Uint8Array, successor: NewRefreshToken): Promise<void> {
  const now = q.raw('clock_timestamp()');
  const { sessionId, nonce } = successor;
  await refreshTokens(q).insert({ digest: successor.digest, session_id: sessionId, nonce, issued_at: now });
  await refreshTokens(q).where({ digest }).update({ used_at: now, successor_digest: successor.digest });
  await sessions(q)
    .where({ id: sessionId })
    .update({ last_used_at: now, refreshes: q.raw('refreshes + 1') });
}

/** Reports whether a session began within the last minutes with a login to the console at an issuer. */
export async function isRecentSsoLogin(q: Queryable, id: SessionId, minutes: number): Promise<boolean> {
  const { rows } = await q.raw<{ rows: { recent: boolean }[] }>(
    `select exists (select from sessions where id = :id and sso_subject is not null
       and created_at > clock_timestamp() - :minutes * interval '1 minute') as recent`,
    { id, minutes },
  );
  return rows[0]?.recent === true;
}

/** Ends one session. @returns false if it had ended before */
export async function endSession(q: Queryable, id: SessionId): Promise<boolean> {
  const ended = sessions(q).where({ id, ended_at: null });
  return (await ended.update({ ended_at: q.raw('clock_timestamp()') })) === 1;
}

/**
 * Ends the sessions of a user, of a user by tokens of an issuer, or of a key without a secret, all except `except`. The
 * transaction must have locked the user or the key. Expired sessions stay as they are, because a user may have any
 * number of them.
 * @returns their number
 */
export async function endSessions(
  q: Queryable,
  of: { readonly user_id: UserId; readonly issuer_id?: IssuerId } | { readonly api_key_id: KeyId },
  except: SessionId | '' = '',
): Promise<number> {
  return endAll(q, sessions(q).where(of).whereRaw('id <> ?', [except]));
}

/** Ends the sessions of several users, like `endSessions`. */
export async function endSessionsOfUsers(q: Queryable, userIds: readonly UserId[]): Promise<void> {
  await endAll(q, sessions(q).whereIn('user_id', userIds));
}

async function endAll(q: Queryable, of: ReturnType<typeof sessions>): Promise<number> {
  return of
    .where({ ended_at: null })
    .whereRaw('expires_at > statement_timestamp()')
    .update({ ended_at: q.raw('clock_timestamp()') });
}

/** A session with the tenant of its user or key. */
type OwnedSession = Pick<SessionRow, 'id' | 'user_id' | 'api_key_id' | 'cookie'> & Pick<UserRow, 'tenant_id'>;

const OWNED = `select s.id, s.user_id, s.api_key_id, s.cookie, coalesce(u.tenant_id, k.tenant_id) as tenant_id
  from sessions s left join users u on u.id = s.user_id left join api_keys k on k.id = s.api_key_id`;

/** Returns the session of a refresh token, used or not. */
export async function sessionOfToken(q: Queryable, digest: Uint8Array): Promise<OwnedSession | undefined> {
  const { rows } = await q.raw<{ rows: OwnedSession[] }>(
    `${OWNED} join refresh_tokens r on r.session_id = s.id where r.digest = :digest`,
    { digest },
  );
  return rows[0];
}

/** Returns the session and its owner; undefined if there is no such session. */
export async function sessionOwner(q: Queryable, id: SessionId): Promise<OwnedSession | undefined> {
  const { rows } = await q.raw<{ rows: OwnedSession[] }>(`${OWNED} where s.id = :id`, { id });
  return rows[0];
}

/**
 * Sessions that ended more than a day ago, the oldest first: their tokens are rejected, whether or not the database
 * knows them. The time is that of the statement, so that an index can find them.
 */
const OVER = `select id from sessions where coalesce(ended_at, expires_at) < statement_timestamp() - interval '1 day'
  order by coalesce(ended_at, expires_at) limit :sessions`;

/**
 * Removes one batch of ended sessions and their refresh tokens. A session with many tokens takes several batches. All
 * tokens of an active session stay, so that the server recognizes a stolen token of any age.
 * @returns the number of removed rows
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
