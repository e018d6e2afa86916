/**
 * Deactivating, activating and unlocking users. A deactivation ends the user's sessions for good and disables the user's keys until the user
 * is activated again.
 */

import { Refusal } from '../../domain/errors.ts';
import type { Transaction } from '../../store/transaction.ts';
import { unlockUser as clearFailures } from '../auth/failure-queries.ts';
import { type AdminParts, type Caller, isOwnUser } from '../caller/caller.ts';
import { mayActOnUser } from '../caller/escalation.ts';
import { notFound } from '../caller/refusals.ts';
import { change } from '../change/change.ts';
import { endSessionsOfUser } from '../sessions/queries.ts';
import { holdUser } from './find.ts';
import { discardPasswordSetups } from './password-queries.ts';
import { findUser, type StoredUser, setUserStatus } from './queries.ts';
import { takePlace } from './quota.ts';
import { type UserResource, userResource } from './resource.ts';

/** @throws Refusal `not_found`, `escalation`, `last_admin` */
export async function deactivateUser(parts: AdminParts, caller: Caller, id: string): Promise<UserResource> {
  return change(
    parts,
    caller,
    { action: 'user.deactivate', target: { type: 'user', id }, existing: true },
    async ({ trx, caller, audit, checkPreconditions }) => {
      const { user, refuseLastAdmin, allowPolicies } = await holdUser(trx, caller, id);
      await mayActOnUser(trx, caller, user, allowPolicies);
      refuseLastAdmin();
      checkPreconditions(userResource(user));
      if (user.status === 'active') await setUserStatus(trx, user.tenantId, user.id, 'deactivated');
      await endSessionsOfUser(trx, user.id);
      await discardPasswordSetups(trx, user.id);
      audit.before = { status: user.status };
      audit.after = { status: 'deactivated' };
      return shown(trx, user);
    },
  );
}

/** @throws Refusal `not_found`, `escalation`, `quota_exceeded` */
export async function activateUser(parts: AdminParts, caller: Caller, id: string): Promise<UserResource> {
  return change(
    parts,
    caller,
    { action: 'user.activate', target: { type: 'user', id }, existing: true },
    async ({ trx, caller, audit, checkPreconditions }) => {
      const { user, allowPolicies } = await holdUser(trx, caller, id);
      await mayActOnUser(trx, caller, user, allowPolicies);
      if (user.status === 'deactivated') await takePlace(trx, user.tenantId);
      checkPreconditions(userResource(user));
      if (user.status === 'deactivated') await setUserStatus(trx, user.tenantId, user.id, 'active');
      audit.before = { status: user.status };
      audit.after = { status: 'active' };
      return shown(trx, user);
    },
  );
}

/**
 * Forgets the failed logins of the user's account, locked or not. The caller's own account is refused: a stolen access token could guess
 * the current password without a limit.
 * @throws Refusal `not_found`, `escalation`, `reauthentication_required`
 */
export async function unlockUser(parts: AdminParts, caller: Caller, id: string): Promise<UserResource> {
  return change(
    parts,
    caller,
    { action: 'user.unlock', target: { type: 'user', id }, existing: true },
    async ({ trx, caller, audit, checkPreconditions }) => {
      const { user, allowPolicies } = await holdUser(trx, caller, id);
      if (isOwnUser(caller, user.id)) throw ownUnlock();
      await mayActOnUser(trx, caller, user, allowPolicies);
      const before = userResource(user);
      checkPreconditions(before);
      await clearFailures(trx, user.id);
      audit.before = { locked_until: before.locked_until };
      audit.after = { locked_until: null };
      return shown(trx, user);
    },
  );
}

function ownUnlock(): Refusal {
  return new Refusal(
    'reauthentication_required',
    'You cannot unlock your own account. Ask another administrator, or wait until the lock ends.',
  );
}

async function shown(trx: Transaction, { tenantId, id }: StoredUser): Promise<UserResource> {
  const user = await findUser(trx, tenantId, id);
  if (user === undefined) throw notFound('user');
  return userResource(user);
}
