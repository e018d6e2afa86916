/**
 * Reauthentication before a change that outlives a stolen access token: a new email address or identity, or a reset of
 * the password. The password is checked before the change's transaction, so that no transaction waits for a hash.
 */

import { Refusal } from '../../domain/errors.ts';
import type { SessionId, UserId } from '../../domain/ids.ts';
import type { Transaction } from '../../store/transaction.ts';
import { type Caller, isOwnUser, selfId } from '../caller/caller.ts';
import type { HeldCaller } from '../caller/hold-caller.ts';
import { isRecentSsoLogin } from '../sessions/queries.ts';
import type { UserRow } from '../users/entity.ts';
import { passwordUserById } from '../users/password-queries.ts';
import { record } from './audit.ts';
import { checkPassword } from './check-password.ts';
import { forgiveAttempt, returnAttempt } from './failure-queries.ts';
import { localSubject } from './login.ts';
import type { AuthParts } from './parts.ts';
import { directoryCheck } from './reauthenticate-directory.ts';
import { attemptAt, returnedOnFailure, type ThrottleParts, withAttemptLimits } from './throttle.ts';

export type ReauthenticationParts = ThrottleParts & Pick<AuthParts, 'passwords' | 'directory'>;

/** The part of a request that reauthenticates its caller. */
export interface PresentedPassword {
  readonly currentPassword: string | undefined;
  /** The addresses that a failure counts for, as in a login. Undefined: the source is unknown. */
  readonly throttledAs: string | undefined;
}

/** The reauthenticated user, and the version of its password. */
export interface Reauthentication {
  readonly userId: UserId;
  readonly passwordVersion: string;
}

/**
 * Checks the current password if a user acts on itself: for a user of a directory, the directory checks it. A wrong
 * password counts as a failed login.
 * @param target the id of the user that the request changes
 * @returns undefined if no check is needed, or the user has no password that can be checked
 * @throws Refusal `reauthentication_required` for a wrong password, `too_many_attempts`, `unavailable`; Fault if the
 *   directory does not respond
 */
export async function reauthenticate(
  parts: ReauthenticationParts,
  caller: Caller,
  target: string,
  { currentPassword, throttledAs }: PresentedPassword,
): Promise<Reauthentication | undefined> {
  const { knex } = parts.db;
  const userId = selfId(caller);
  if (currentPassword === undefined || userId === undefined || userId !== target) return undefined;
  const user = await passwordUserById(knex, userId);
  if (user === undefined) return undefined;
  const check = user.of_directory ? await directoryCheck(parts, userId, currentPassword) : undefined;
  if (user.of_directory && check === undefined) return undefined;
  const attempt = attemptAt(check?.subject ?? localSubject(userId, user), throttledAs);
  return withAttemptLimits(parts, attempt, async () => {
    if (check === undefined) {
      const { proved } = await checkPassword(parts, attempt, currentPassword, async () => user);
      if (proved !== undefined) {
        await forgiveAttempt(knex, attempt);
        return { userId, passwordVersion: proved.password_version };
      }
    } else if (await returnedOnFailure(knex, attempt, check.isRight)) {
      // Two persons may have the same subject, so a success clears no earlier failure.
      await returnAttempt(knex, attempt);
      return { userId, passwordVersion: user.password_version };
    }
    const { address, requestId, nowMs } = caller;
    const from = { address, throttledAs, userAgent: undefined, requestId, nowMs };
    await record(knex, from, {
      action: 'auth.reauthenticate',
      actor: userId,
      tenant: user.tenant_id,
      target: { type: 'user', id: userId },
      result: 'failure',
    });
    throw required('The current password is wrong.').asAudited();
  });
}

/**
 * Must be called with the user's row locked. A user that a token of an issuer created has no password and proves itself
 * by a recent login at the issuer.
 * @throws Refusal `reauthentication_required` if the caller acts on itself and has not proved itself again, and for
 * every key that acts on its owner
 */
export async function requireReauthentication(
  trx: Transaction,
  caller: HeldCaller,
  user: Pick<UserRow, 'id' | 'source'>,
  proof: Reauthentication | undefined,
): Promise<void> {
  if (!isOwnUser(caller, user.id)) return;
  if (caller.principal.kind === 'api_key') {
    throw new Refusal(
      'reauthentication_required',
      'An API key cannot change the email address, the password or the identities of its owner. Log in, and send the access token.',
    );
  }
  if (user.source !== 'local' && user.source !== 'ldap') return requireRecentLogin(trx, caller.principal.sessionId);
  if (proof?.userId !== user.id) throw required('This change needs your current password.');
  // The password may have changed after the check.
  if ((await passwordUserById(trx, user.id))?.password_version !== proof.passwordVersion) {
    throw required('The current password is wrong.');
  }
}

async function requireRecentLogin(trx: Transaction, sessionId: SessionId | undefined): Promise<void> {
  if (sessionId !== undefined && (await isRecentSsoLogin(trx, sessionId, RECENT_MINUTES))) return;
  throw required(`This change needs a login at your issuer within the last ${RECENT_MINUTES} minutes.`);
}

const RECENT_MINUTES = 5;

function required(message: string): Refusal {
  return new Refusal('reauthentication_required', message, {
    param: 'current_password',
    errors: [{ path: '/current_password', message }],
  });
}
