/** Logins: a password starts a session with its first pair of tokens. */

import type { UserId } from '../../domain/ids.ts';
import { tenantTransaction } from '../../store/transaction.ts';
import { invalidCredential } from '../caller/admission.ts';
import { auditUsername } from '../change/audit-row.ts';
import { beginSession } from '../sessions/queries.ts';
import { type PasswordUser, passwordUserByEmail, upgradeHash } from '../users/password-queries.ts';
import { record, recordRefusal } from './audit.ts';
import { beginningSession } from './begin.ts';
import { checkPassword, type ProvedUser } from './check-password.ts';
import { directoryLogin, directorySubject } from './directory-login.ts';
import { type Claimed, claimLogin, forgiveAttempt } from './failure-queries.ts';
import { recordLock } from './lock.ts';
import { type AuthParts, type IssuedTokens, type LoginParts, type Provenance, tenantSuspended } from './parts.ts';
import { attemptAt, type ClaimAttempt, type LoginAttempt, returnedOnFailure, withAttemptLimits } from './throttle.ts';

export interface LoginRequest {
  /** If no directory is configured, a directory's username proves no user, with the same work as a wrong password. */
  readonly account:
    | { readonly kind: 'email'; readonly email: string }
    | { readonly kind: 'directory'; readonly username: string };
  readonly password: string;
  /** True if the refresh token must travel in a cookie, and only there. */
  readonly cookie: boolean;
}

/**
 * @throws Refusal: `invalid_credential` if the login proves no user; `tenant_suspended` after a correct password;
 * `too_many_attempts`; `unavailable` if too many passwords are being checked; with a directory also `password_expired`,
 * and a Fault if the directory does not respond
 */
export async function login(parts: LoginParts, request: LoginRequest, from: Provenance): Promise<IssuedTokens> {
  const { account, password, cookie } = request;
  if (account.kind === 'directory' && parts.directory !== undefined) {
    return await directoryLogin(parts, parts.directory, { username: account.username, password, cookie }, from);
  }
  const name = accountName(request);
  const attempt = attemptAt(name.subject, from.throttledAs);
  const { knex } = parts.db;
  let found: (Claimed & { readonly user: PasswordUser | undefined }) | undefined;
  const claimAll: ClaimAttempt = async (of, windows) => {
    found = await claimLogin(knex, of, windows, name.email);
    return found;
  };
  const find = async (): Promise<PasswordUser | undefined> => {
    // The address is the last subject, so all subjects were below their limits.
    if (found?.address === true) return found.user;
    return name.email === undefined ? undefined : passwordUserByEmail(knex, name.email);
  };
  const work = async (): Promise<IssuedTokens> => {
    const { user, proved } = await checkPassword(parts, attempt, request.password, find);
    const pair = proved === undefined ? undefined : await begin(parts, request, from, proved, attempt);
    if (pair !== undefined) return pair;
    await record(knex, from, {
      action: 'auth.login',
      tenant: user?.tenant_id,
      target: { type: 'user', id: name.shown },
      result: 'failure',
      after: { reason: failureReason(user) },
    });
    await recordLock(parts, attempt, from, name.shown);
    throw invalidCredential().asAudited();
  };
  return await withAttemptLimits(parts, attempt, work, claimAll);
}

/** For the audit log only. The response is the same for all. */
function failureReason(user: PasswordUser | undefined): string {
  if (user === undefined) return 'unknown_user';
  if (!user.active) return 'deactivated';
  if (user.of_directory) return 'directory_user';
  return user.password_hash === null ? 'no_password' : 'wrong_password';
}

interface AccountName {
  /** The subject of failures. */
  readonly subject: string;
  /** For the lookup. Undefined if no user can have it, because it is too long or cannot be stored. */
  readonly email: string | undefined;
  /** As the audit log shows it. */
  readonly shown: string;
}

function accountName({ account }: LoginRequest): AccountName {
  const name = (account.kind === 'email' ? account.email : account.username).trim().toLowerCase();
  const shown = auditUsername(name);
  switch (account.kind) {
    case 'email':
      return { subject: emailSubject(name), email: name === shown ? name : undefined, shown };
    case 'directory':
      return { subject: directorySubject(name), email: undefined, shown };
    default:
      return account satisfies never;
  }
}

export function emailSubject(email: string): string {
  return `email:${email}`;
}

/** Returns the subject under which failures of a local user are counted. A login counts under the same subject. */
export function localSubject(id: UserId, user: PasswordUser | undefined): string {
  const email = user?.email ?? null;
  return email === null ? `user:${id}` : emailSubject(email);
}

/**
 * Starts the session after a correct password. Undefined if the password is no longer valid, because of a concurrent
 * reset or deactivation.
 */
async function begin(
  parts: AuthParts,
  request: LoginRequest,
  from: Provenance,
  user: ProvedUser,
  attempt: LoginAttempt,
): Promise<IssuedTokens | undefined> {
  if (!user.tenant_active) {
    await forgiveAttempt(parts.db.knex, attempt);
    const event = {
      action: 'auth.login',
      actor: user.id,
      tenant: user.tenant_id,
      target: { type: 'user', id: user.id },
      after: { code: 'tenant_suspended' },
    } as const;
    throw await recordRefusal(parts.db.knex, from, event, tenantSuspended());
  }
  const { beginning, pair } = beginningSession(parts, from, user.tenant_id, {
    attempt,
    forgives: true,
    cookie: request.cookie,
  });
  const { knex, permits } = parts.db;
  // The statement waits for the user's row, so it needs a permit like a transaction.
  const begun = await returnedOnFailure(knex, attempt, () =>
    permits.run(() => beginSession(knex, user, beginning), user.tenant_id),
  );
  if (!begun) return undefined;
  await renewHash(parts, user, request.password);
  return await pair(user.id);
}

/**
 * Updates the password's hash to the current parameters. If that fails, the login succeeds, and the next one tries
 * again.
 */
async function renewHash(parts: AuthParts, user: ProvedUser, password: string): Promise<void> {
  if (!parts.passwords.needsRehash(user.password_hash)) return;
  try {
    const renewed = await parts.passwords.hash(password);
    await tenantTransaction(parts.db, user.tenant_id, (trx) => upgradeHash(trx, user.id, user.password_hash, renewed));
  } catch {
    return;
  }
}
