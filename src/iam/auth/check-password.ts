/** Checks a password with the same work and the same end for everybody: unknown, wrong, empty, deactivated, without a password. */

import type { PasswordUser } from '../users/password-queries.ts';
import type { AuthParts } from './parts.ts';
import { type LoginAttempt, takeBack } from './throttle.ts';

/** A user whose password was right and who is active. */
export interface ProvedUser extends PasswordUser {
  readonly password_hash: string;
}

/**
 * Call it inside `withAttemptLimits`.
 * @param find looks the user up
 * @returns undefined when the password proves nobody; the attempt then stays counted as a failure. `user` is for the audit alone.
 * @throws Refusal `unavailable` when nobody could look at the password; then the attempt is not counted
 */
export async function checkPassword(
  parts: Pick<AuthParts, 'db' | 'passwords'>,
  attempt: LoginAttempt,
  password: string,
  find: () => Promise<PasswordUser | undefined>,
): Promise<{ readonly user: PasswordUser | undefined; readonly proved: ProvedUser | undefined }> {
  try {
    const user = await find();
    const hash = user?.password_hash ?? undefined;
    const right = await parts.passwords.verify(hash, password);
    if (!right || user === undefined || hash === undefined || !user.active) return { user, proved: undefined };
    return { user, proved: { ...user, password_hash: hash } };
  } catch (error) {
    await takeBack(parts.db.knex, attempt);
    throw error;
  }
}
