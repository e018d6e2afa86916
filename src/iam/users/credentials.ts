/** Makes the one-time token with which a user sets a new password. */

import type { Static } from 'typebox';
import { makeOneTimeToken } from '../../identity/opaque-tokens.ts';
import {
  type PresentedPassword,
  type ReauthenticationParts,
  reauthenticate,
  requireReauthentication,
} from '../auth/reauthenticate.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { mayActOnUser } from '../caller/escalation.ts';
import { invalidField } from '../caller/refusals.ts';
import { change } from '../change/change.ts';
import { revealOnce } from '../change/idempotency.ts';
import { type PasswordReset, type UserRow, userResource } from './entity.ts';
import { holdUser } from './find.ts';
import { makerOf } from './maker.ts';
import { putPasswordSetup } from './password-queries.ts';

/**
 * @throws Refusal `not_found`, `escalation`, `invalid_field` for users without a password in Postern;
 *   `reauthentication_required` and `too_many_attempts` for the caller's own password
 */
export async function startPasswordReset(
  parts: AdminParts & ReauthenticationParts,
  caller: Caller,
  id: string,
  presented: PresentedPassword,
): Promise<Static<typeof PasswordReset>> {
  const proof = await reauthenticate(parts, caller, id, presented);
  const setup = makeOneTimeToken(parts.random);
  const entry = { action: 'user.password_reset', target: { type: 'user', id }, existing: true } as const;
  const reset = await change(parts, caller, entry, async ({ trx, caller, audit, checkPreconditions }) => {
    const { user } = await holdUser(trx, caller, id);
    if (user.source === 'local') await requireReauthentication(trx, caller, user, proof);
    await mayActOnUser(trx, caller, user);
    if (user.source !== 'local') throw invalidField('', elsewhere(user));
    checkPreconditions(userResource(user));
    const expiry = { expires_at: await putPasswordSetup(trx, user.id, setup.digest, makerOf(caller)) };
    audit.after = expiry;
    return expiry;
  });
  return { ...revealOnce(caller, { password_setup_token: setup.text }), ...reset };
}

function elsewhere({ source }: UserRow): string {
  return source === 'ldap'
    ? 'The directory manages the password of this user. Change it there.'
    : 'A token of an issuer created this user, which has no password.';
}
