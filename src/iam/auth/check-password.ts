/**
 * Checks a password with the same work for every account: unknown, deactivated, without a password, with a wrong or an
 * empty password.
 */

import type { PasswordUser } from '../users/password-queries.ts';
import type { AuthParts } from './parts.ts';
import { type LoginAttempt, returnedOnFailure } from './throttle.ts';

/** An active user whose password was correct. */
export interface ProvedUser extends PasswordUser {
  readonly password_hash: string;
}

/**
 * Must be called inside `withAttemptLimits`.
 * @param find looks the user up
 * @returns undefined if the password proves no user. The attempt then counts as a failure. `user` is only for the audit
 * row.
 * @throws Refusal `unavailable` if the password could not be checked; then the attempt does not count
 */
export async function checkPassword(
  parts: Pick<AuthParts, 'db' | 'passwords'>,
  attempt: LoginAttempt,
  password: string,
  find: () => Promise<PasswordUser | undefined>,
): Promise<{ readonly user: PasswordUser | undefined; readonly proved: ProvedUser | undefined }> {
  return returnedOnFailure(parts.db.knex, attempt, async () => {
    const user = await find();
    const hash = user?.password_hash ?? undefined;
    const right = await parts.passwords.verify(hash, password);
    if (!right || user === undefined || hash === undefined || !user.active) return { user, proved: undefined };
    return { user, proved: { ...user, password_hash: hash } };
  });
}
