/** What an administrator may do about another's password: let the user set a new one. */

import { makeOneTimeToken } from '../../identity/one-time.ts';
import { putPasswordSetup } from '../../store/queries/credentials.ts';
import type { AdminParts, Caller } from '../caller.ts';
import { change } from '../change.ts';
import { mayActOnUser } from '../escalation.ts';
import { disclosed } from '../idempotency.ts';
import { invalidField } from '../refusals.ts';
import { holdUser } from './find.ts';
import { makerOf } from './maker.ts';
import { userResource } from './resource.ts';

export interface PasswordReset {
  /** Shown here and never again. */
  readonly password_setup_token?: string;
  /** In place of the token, in an answer given again. */
  readonly secret_available?: false;
  readonly expires_at: string;
}

/** @throws Refusal `not_found`, `escalation`, `invalid_field` for users whose password is the directory's */
export async function resetPassword(parts: AdminParts, caller: Caller, id: string): Promise<PasswordReset> {
  const setup = makeOneTimeToken(parts.random);
  const reset = await change(
    parts,
    caller,
    { action: 'user.password_reset', target: { type: 'user', id }, existing: true },
    async ({ trx, caller, audit, held }) => {
      const { user, allowPolicies } = await holdUser(trx, caller, id);
      await mayActOnUser(trx, caller, user, allowPolicies);
      if (user.source !== 'local') throw invalidField('', 'The directory manages the password of this user. Change it there.');
      held(userResource(user));
      const expires = new Date(await putPasswordSetup(trx, user.id, setup.digest, makerOf(caller)));
      const after = { expires_at: expires.toISOString() };
      audit.after = after;
      return after;
    },
  );
  return { ...disclosed(caller, { password_setup_token: setup.text }), ...reset };
}
