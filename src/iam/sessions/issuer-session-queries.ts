/**
 * Sessions that begin with a token of an issuer. The transaction locks the issuer, then the user or key, so a change
 * that ends their rights either precedes the session, which then does not begin, or ends it.
 */

import type { IssuerId, KeyId, SessionId, UserId } from '../../domain/ids.ts';
import { type AuditRow, auditedBy, auditValues } from '../../store/audit-rows.ts';
import { runPipelined, runPrepared } from '../../store/prepared.ts';
import type { Transaction } from '../../store/transaction.ts';
import { MAX_SESSIONS, type NewRefreshToken, type NewSession } from './queries.ts';

/** The principal that a token of an issuer proved. */
export type SessionOwner =
  | { readonly kind: 'user'; readonly id: UserId }
  | { readonly kind: 'api_key'; readonly id: KeyId };

interface IssuerSession {
  readonly session: NewSession;
  readonly owner: SessionOwner;
  readonly issuerId: IssuerId;
  /** Permission patterns to which the session is narrowed. Undefined: it has all permissions of its owner. */
  readonly scope?: readonly string[] | undefined;
  /** `sid` and `sub` of the ID token of a login to the console. */
  readonly sso?: { readonly sid: string | undefined; readonly subject: string } | undefined;
  /** The first refresh token. Undefined: the session cannot be refreshed. */
  readonly token?: Pick<NewRefreshToken, 'digest' | 'nonce'> | undefined;
  readonly audit: AuditRow;
}

const ISSUER = {
  name: 'hold_issuer_of_session',
  text: 'select id from issuers where id = $1 and enabled for share',
};

const OWNER = {
  user: {
    name: 'hold_user_of_issuer_session',
    text: `select id from users where id = $1 and status = 'active' and directory_suspension is null for share`,
  },
  api_key: {
    name: 'hold_key_of_issuer_session',
    text: `select id from api_keys where id = $1 and revoked_at is null and disabled_at is null
      and (expires_at is null or expires_at > clock_timestamp()) for share`,
  },
} as const;

const owned = `(s.user_id = $2::text or s.api_key_id = $3::text)`;

const BEGIN = {
  name: 'begin_issuer_session',
  text: `with begun as (
      insert into sessions (id, user_id, api_key_id, issuer_id, created_at, expires_at, cookie, address, user_agent, scope, sso_sid, sso_subject)
      values ($1::text, $2::text, $3::text, $4::text, clock_timestamp(), clock_timestamp() + $5::float8 * interval '1 millisecond', $6::boolean,
        $7::text, $8::text, $9::text[], $10::text, $11::text)
      returning id, user_id
    ), surplus as (
      update sessions set ended_at = clock_timestamp() where id in (
        select s.id from sessions s where ${owned} and s.ended_at is null and s.expires_at > statement_timestamp()
        order by s.last_used_at desc, s.id desc offset ${MAX_SESSIONS - 1}
      )
    ), first as (
      insert into refresh_tokens (digest, session_id, nonce, issued_at)
      select $12::bytea, id, $13::bytea, clock_timestamp() from begun where $12::bytea is not null
    ), logged_in as (
      insert into user_logins (user_id, last_login_at) select user_id, clock_timestamp() from begun where user_id is not null
      on conflict (user_id) do update set last_login_at = greatest(user_logins.last_login_at, excluded.last_login_at)
    ), ${auditedBy('begun', 14)}
    select id from begun`,
};

/**
 * Begins a session with its audit row. If the owner has 1,000 active sessions, the least recently used one ends.
 * @returns false if the issuer was disabled or deleted, or the user or key can no longer be used; then nothing is
 * written
 */
export async function beginIssuerSession(trx: Transaction, begun: IssuerSession): Promise<boolean> {
  const { owner, issuerId } = begun;
  const held = await runPipelined<{ id: string }>(trx, [
    [ISSUER, issuerId],
    [OWNER[owner.kind], owner.id],
  ]);
  if (held.some((rows) => rows.length === 0)) return false;
  // A statement of its own, because a statement that waits for a lock does not see what was written until then.
  await runPrepared<{ id: SessionId }>(trx, BEGIN, valuesOf(begun));
  return true;
}

function valuesOf({ session, owner, issuerId, scope, sso, token, audit }: IssuerSession): readonly unknown[] {
  const { id, lifetimeMs, cookie, address = null, userAgent = null } = session;
  return [
    ...[id, owner.kind === 'user' ? owner.id : null, owner.kind === 'api_key' ? owner.id : null, issuerId],
    ...[lifetimeMs, cookie, address, userAgent, scope ?? null, sso?.sid ?? null, sso?.subject ?? null],
    ...[token?.digest ?? null, token?.nonce ?? null],
    ...auditValues(audit),
  ];
}
