/** Sets a password: with the old one, or with a one-time token from an administrator. */

import { Refusal } from '../../domain/errors.ts';
import { isOneTimeToken, opaqueDigest } from '../../identity/opaque-tokens.ts';
import { passwordProblems } from '../../identity/password-rules.ts';
import { type Transaction, tenantTransaction } from '../../store/transaction.ts';
import { invalidCredential } from '../caller/admission.ts';
import type { Caller } from '../caller/caller.ts';
import { asCaller } from '../caller/hold-caller.ts';
import { invalidField } from '../caller/refusals.ts';
import { applyHere } from '../change/change.ts';
import { ownSession } from '../sessions/own.ts';
import { endSessions } from '../sessions/queries.ts';
import { type MakerRefusal, makerRefusal } from '../users/maker.ts';
import {
  discardPasswordSetups,
  findPasswordSetup,
  type PasswordUser,
  passwordUserById,
  replacePassword,
  setPassword,
  usePasswordSetup,
} from '../users/password-queries.ts';
import { record, recordRefusal } from './audit.ts';
import { checkPassword } from './check-password.ts';
import { forgiveAttempt } from './failure-queries.ts';
import { localSubject } from './login.ts';
import type { AuthParts, LoginParts, Provenance } from './parts.ts';
import { attemptAt, forgetAccount, returnedOnFailure, withAttemptLimits } from './throttle.ts';

const PASSWORD_ELSEWHERE =
  'Postern does not have your password. Change it in your directory, or at the provider with which you log in.';

export interface PasswordChange {
  readonly oldPassword: string;
  readonly newPassword: string;
}

/**
 * Changes the caller's own password. A wrong old password counts as a failed login, so a stolen access token does not
 * allow more guesses. All other sessions end.
 * @throws Refusal: `invalid_credential` for a wrong old password, `invalid_field` for a new one that is not allowed and
 * for users whose password the directory has, `too_many_attempts`, `insufficient_permission` for keys
 */
export async function changePassword(
  parts: LoginParts,
  caller: Caller,
  change: PasswordChange,
  from: Provenance,
): Promise<void> {
  const { userId, sessionId } = ownSession(caller);
  const found = await passwordUserById(parts.db.knex, userId);
  if (found?.of_directory === true) throw invalidField('', PASSWORD_ELSEWHERE);
  refuseWeak(change.newPassword, found);
  const attempt = attemptAt(localSubject(userId, found), from.throttledAs);
  await withAttemptLimits(parts, attempt, async () => {
    const { proved } = await checkPassword(parts, attempt, change.oldPassword, async () => found);
    if (proved === undefined) {
      await record(parts.db.knex, from, {
        action: 'auth.password_change',
        actor: userId,
        tenant: found?.tenant_id,
        target: { type: 'user', id: userId },
        result: 'failure',
      });
      throw wrongPassword().asAudited();
    }
    const hash = await returnedOnFailure(parts.db.knex, attempt, () => parts.passwords.hash(change.newPassword));
    await asCaller(parts.db, caller, { user: userId }, async (trx) => {
      if (!(await replacePassword(trx, userId, proved.password_version, hash))) throw wrongPassword();
      const ended = await endSessions(trx, { user_id: userId }, sessionId);
      await discardPasswordSetups(trx, [userId]);
      await forgiveAttempt(trx, attempt);
      await recordSet(trx, from, 'auth.password_change', proved, ended);
    });
  });
  await applyHere(parts);
}

/**
 * Sets a new password with a one-time token. The token acts for its creator, which must still be allowed to act on the
 * user. All sessions of the user end, and the failures of the account no longer count. If the password is not allowed,
 * or the creator may not act on the user now, the token remains valid until it expires.
 * @throws Refusal: `invalid_credential` for a token that is unknown, used or expired, or whose user or creator does not
 * permit its use; `invalid_field`
 */
export async function resetPassword(
  parts: AuthParts,
  reset: { readonly token: string; readonly newPassword: string },
  from: Provenance,
): Promise<void> {
  if (!isOneTimeToken(reset.token)) throw invalidCredential();
  const digest = opaqueDigest(reset.token);
  const { db } = parts;
  const setup = await findPasswordSetup(db.knex, digest);
  const tenant = setup && (await passwordUserById(db.knex, setup.userId))?.tenant_id;
  if (tenant === undefined) throw invalidCredential();
  // A rejected token gets the same response as an unknown one, so the creator is checked before the password, and again
  // in the transaction.
  const user = await admitted(
    parts,
    from,
    await tenantTransaction(db, tenant, (trx) => checkSetup(trx, parts, digest, from)),
  );
  refuseWeak(reset.newPassword, user);
  const hash = await parts.passwords.hash(reset.newPassword);
  const check = await tenantTransaction(db, tenant, async (trx) => {
    const checked = await checkSetup(trx, parts, digest, from);
    if (checked.kind === 'usable') await useSetup(trx, digest, checked.user, hash, from);
    return checked;
  });
  await admitted(parts, from, check);
  await applyHere(parts);
}

type SetupCheck =
  | { readonly kind: 'unknown' }
  | { readonly kind: 'usable'; readonly user: PasswordUser }
  | { readonly kind: 'refused'; readonly user: PasswordUser; readonly reason: MakerRefusal };

async function checkSetup(
  trx: Transaction,
  { builtinRoles }: AuthParts,
  digest: Uint8Array,
  from: Provenance,
): Promise<SetupCheck> {
  const setup = await findPasswordSetup(trx, digest);
  const user = setup && (await passwordUserById(trx, setup.userId));
  if (setup === undefined || user === undefined) return { kind: 'unknown' };
  const { requestId, nowMs } = from;
  const reason = await makerRefusal(trx, { setup, tenant: user.tenant_id, requestId, nowMs, builtinRoles });
  return reason === undefined ? { kind: 'usable', user } : { kind: 'refused', user, reason };
}

/**
 * @throws Refusal `invalid_credential` unless the token may be used. The audit log has the reason why its creator may
 * not act.
 */
async function admitted(parts: AuthParts, from: Provenance, check: SetupCheck): Promise<PasswordUser> {
  if (check.kind === 'usable') return check.user;
  if (check.kind === 'refused') {
    const { user, reason } = check;
    const event = {
      action: 'auth.password_setup',
      tenant: user.tenant_id,
      target: { type: 'user', id: user.id },
      after: { reason },
    } as const;
    throw await recordRefusal(parts.db.knex, from, event, invalidCredential());
  }
  throw invalidCredential();
}

/**
 * @throws Refusal `invalid_credential` if the user may have no password now, or another request used the token first
 */
async function useSetup(
  trx: Transaction,
  digest: Uint8Array,
  user: PasswordUser,
  hash: string,
  from: Provenance,
): Promise<void> {
  if (!(await setPassword(trx, user.id, hash)) || !(await usePasswordSetup(trx, digest))) throw invalidCredential();
  await discardPasswordSetups(trx, [user.id]);
  const ended = await endSessions(trx, { user_id: user.id });
  await forgetAccount(trx, localSubject(user.id, user));
  await recordSet(trx, from, 'auth.password_setup', user, ended);
}

async function recordSet(
  trx: Transaction,
  from: Provenance,
  action: 'auth.password_change' | 'auth.password_setup',
  user: PasswordUser,
  ended: number,
): Promise<void> {
  await record(trx, from, {
    action,
    actor: user.id,
    tenant: user.tenant_id,
    target: { type: 'user', id: user.id },
    result: 'success',
    after: { sessions_ended: ended },
  });
}

function wrongPassword(): Refusal {
  return new Refusal('invalid_credential', 'The old password is wrong.', { param: 'old_password' });
}

/** @throws Refusal `invalid_field` with every reason why the new password is not allowed */
function refuseWeak(password: string, owner: PasswordUser | undefined): void {
  const problems = passwordProblems(password, { email: owner?.email ?? undefined, name: owner?.name });
  if (problems.length === 0) return;
  throw new Refusal('invalid_field', problems.join(' '), {
    param: 'new_password',
    errors: problems.map((message) => ({ path: '/new_password', message })),
  });
}
