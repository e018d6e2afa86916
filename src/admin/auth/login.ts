/** Logging in: a password becomes a session with its first pair of tokens. */

import { makeId } from '../../domain/ids.ts';
import { makeRefreshNonce, makeRefreshToken } from '../../identity/refresh.ts';
import { transaction } from '../../store/database.ts';
import { type PasswordUser, passwordUserByEmail, upgradeHash } from '../../store/queries/credentials.ts';
import { beginSession } from '../../store/queries/sessions.ts';
import { auditRow, record } from './audit.ts';
import { checkPassword, type ProvedUser } from './check-password.ts';
import {
  type AuthParts,
  invalidCredential,
  type LoginParts,
  makeJti,
  type Provenance,
  type TokenPair,
  tenantSuspended,
} from './parts.ts';
import { type Attempt, attemptAt, attempting, forgive } from './throttle.ts';

export interface LoginRequest {
  /** A directory's user name proves nobody while no directory is configured, at the same cost as a wrong password. */
  readonly account:
    | { readonly kind: 'email'; readonly email: string }
    | { readonly kind: 'directory'; readonly username: string };
  readonly password: string;
  /** The refresh token shall travel in a cookie, and only there. */
  readonly cookie: boolean;
}

/** Longest e-mail address that SMTP carries (RFC 5321, section 4.5.3.1), plus room: no user has a longer one. */
const MAX_NAME_LENGTH = 320;
const MAX_USER_AGENT_LENGTH = 256;

/**
 * @throws Refusal: `invalid_credential` for everything that proves nobody; `tenant_suspended` after a correct password;
 *   `too_many_attempts`; `unavailable` when too many passwords are being checked
 */
export async function login(parts: LoginParts, request: LoginRequest, from: Provenance): Promise<TokenPair> {
  const name = accountName(request);
  const attempt = attemptAt(name.subject, from.address);
  return await attempting(parts, attempt, async () => {
    const { user, proved } = await checkPassword(parts, attempt, request.password, async () =>
      name.email === undefined ? undefined : passwordUserByEmail(parts.db.knex, name.email),
    );
    const pair = proved === undefined ? undefined : await begin(parts, request, from, proved, attempt);
    if (pair !== undefined) return pair;
    await record(parts.db.knex, from, {
      action: 'auth.login',
      actor: undefined,
      tenant: user?.tenantId,
      target: { type: 'user', id: name.shown },
      result: 'failure',
      after: { reason: failureReason(user) },
    });
    throw invalidCredential();
  });
}

/** For the audit log alone: the answer is the same for all. */
function failureReason(user: PasswordUser | undefined): string {
  if (user === undefined) return 'unknown_user';
  if (!user.active) return 'deactivated';
  return user.passwordHash === undefined ? 'no_password' : 'wrong_password';
}

interface AccountName {
  /** What failures are counted under. */
  readonly subject: string;
  /** To look up; undefined when no user can have it. */
  readonly email: string | undefined;
  /** As the audit log shows it. */
  readonly shown: string;
}

function accountName({ account }: LoginRequest): AccountName {
  const name = (account.kind === 'email' ? account.email : account.username).trim().toLowerCase();
  const shown = name.slice(0, MAX_NAME_LENGTH).toWellFormed();
  switch (account.kind) {
    case 'email':
      return { subject: emailSubject(name), email: name.length <= MAX_NAME_LENGTH ? name : undefined, shown };
    case 'directory':
      return { subject: `directory:${name}`, email: undefined, shown };
    default:
      return account satisfies never;
  }
}

/** What failures of a local user are counted under. */
export function emailSubject(email: string): string {
  return `email:${email}`;
}

/** The password was right. Undefined when it no longer is: a reset or a deactivation was faster. */
async function begin(
  parts: AuthParts,
  request: LoginRequest,
  from: Provenance,
  user: ProvedUser,
  attempt: Attempt,
): Promise<TokenPair | undefined> {
  if (!user.tenantActive) {
    await transaction(parts.db, async (trx) => {
      await forgive(trx, attempt);
      await record(trx, from, {
        action: 'auth.login',
        actor: user.id,
        tenant: user.tenantId,
        target: { type: 'user', id: user.id },
        result: 'refused',
        after: { code: 'tenant_suspended' },
      });
    });
    throw tenantSuspended();
  }
  const sessionId = makeId('ses', from.nowMs, parts.random(10));
  const refresh = makeRefreshToken(parts.random);
  const begun = await beginSession(parts.db.knex, {
    session: {
      id: sessionId,
      userId: user.id,
      lifetimeMs: parts.login.refreshMs,
      cookie: request.cookie,
      address: from.address,
      userAgent: from.userAgent?.slice(0, MAX_USER_AGENT_LENGTH),
    },
    token: { digest: refresh.digest, nonce: makeRefreshNonce(parts.random) },
    passwordVersion: user.passwordVersion,
    forgiven: attempt,
    audit: auditRow(from, {
      action: 'auth.login',
      actor: user.id,
      tenant: user.tenantId,
      target: { type: 'user', id: user.id },
      result: 'success',
      after: { session_id: sessionId },
    }),
  });
  if (!begun) return undefined;
  await renewHash(parts, user, request.password);
  const access = await parts.tokens.issue({
    userId: user.id,
    sessionId,
    tenantId: user.tenantId,
    nowMs: from.nowMs,
    jti: makeJti(parts.random),
  });
  return { accessToken: access.token, expiresIn: access.expiresIn, refreshToken: refresh.text, cookie: request.cookie };
}

/** While the password is at hand, its hash is brought to today's parameters. A login does not fail for it: the next one tries again. */
async function renewHash(parts: AuthParts, user: ProvedUser, password: string): Promise<void> {
  if (!parts.passwords.needsRehash(user.passwordHash)) return;
  try {
    const renewed = await parts.passwords.hash(password);
    await transaction(parts.db, (trx) => upgradeHash(trx, user.id, user.passwordHash, renewed));
  } catch {
    return;
  }
}
