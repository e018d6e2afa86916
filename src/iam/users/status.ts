/**
 * Deactivates, activates, unlocks and deletes users. A deactivation ends the user's sessions, and disables the user's
 * keys until the user is activated again.
 */

import { Refusal } from '../../domain/errors.ts';
import type { Transaction } from '../../store/transaction.ts';
import { revokeKeysOfUser } from '../api-keys/queries.ts';
import { clearFailuresOfUser } from '../auth/failure-queries.ts';
import { type AdminParts, type Caller, isOwnUser } from '../caller/caller.ts';
import { mayActOnUser } from '../caller/escalation.ts';
import { orNotFound } from '../caller/refusals.ts';
import { change } from '../change/change.ts';
import { endSessionsOfUser } from '../sessions/queries.ts';
import { reserveSeat } from './checks.ts';
import { type UserResource, type UserRow, userResource } from './entity.ts';
import { holdUser } from './find.ts';
import { discardPasswordSetups } from './password-queries.ts';
import { deleteUserRow, findUser, setUserStatus } from './queries.ts';

/** @throws Refusal `not_found`, `escalation`, `last_admin` */
export async function deactivateUser(parts: AdminParts, caller: Caller, id: string): Promise<UserResource> {
  const entry = { action: 'user.deactivate', target: { type: 'user', id }, existing: true } as const;
  return change(parts, caller, entry, async ({ trx, caller, audit, checkPreconditions }) => {
    const { user, refuseLastAdmin, allowPolicies } = await holdUser(trx, caller, id);
    await mayActOnUser(trx, caller, user, allowPolicies);
    refuseLastAdmin();
    checkPreconditions(userResource(user));
    if (user.status === 'active') await setUserStatus(trx, user.tenant_id, user.id, 'deactivated');
    await endSessionsOfUser(trx, user.id);
    await discardPasswordSetups(trx, user.id);
    audit.before = { status: user.status };
    audit.after = { status: 'deactivated' };
    return shown(trx, user);
  });
}

/** @throws Refusal `not_found`, `escalation`, `quota_exceeded` */
export async function activateUser(parts: AdminParts, caller: Caller, id: string): Promise<UserResource> {
  const entry = { action: 'user.activate', target: { type: 'user', id }, existing: true } as const;
  return change(parts, caller, entry, async ({ trx, caller, audit, checkPreconditions }) => {
    const { user, allowPolicies } = await holdUser(trx, caller, id);
    await mayActOnUser(trx, caller, user, allowPolicies);
    if (user.status === 'deactivated') await reserveSeat(trx, user.tenant_id);
    checkPreconditions(userResource(user));
    if (user.status === 'deactivated') await setUserStatus(trx, user.tenant_id, user.id, 'active');
    audit.before = { status: user.status };
    audit.after = { status: 'active' };
    return shown(trx, user);
  });
}

/**
 * Forgets the failed logins of the user's account, locked or not. The caller's own account is refused: a stolen access
 * token could guess the current password without a limit.
 * @throws Refusal `not_found`, `escalation`, `reauthentication_required`
 */
export async function unlockUser(parts: AdminParts, caller: Caller, id: string): Promise<UserResource> {
  const entry = { action: 'user.unlock', target: { type: 'user', id }, existing: true } as const;
  return change(parts, caller, entry, async ({ trx, caller, audit, checkPreconditions }) => {
    const { user, allowPolicies } = await holdUser(trx, caller, id);
    if (isOwnUser(caller, user.id)) throw ownUnlock();
    await mayActOnUser(trx, caller, user, allowPolicies);
    const before = userResource(user);
    checkPreconditions(before);
    await clearFailuresOfUser(trx, user.id);
    audit.before = { locked_until: before.locked_until };
    audit.after = { locked_until: null };
    return shown(trx, user);
  });
}

function ownUnlock(): Refusal {
  return new Refusal(
    'reauthentication_required',
    'You cannot unlock your own account. Ask another administrator, or wait until the lock ends.',
  );
}

/**
 * Ends the user's sessions, revokes its keys and frees its email address. Upkeep removes the rows of the sessions
 * later, in batches.
 * @throws Refusal `not_found`, `escalation`, `last_admin`
 */
export async function deleteUser(parts: AdminParts, caller: Caller, id: string): Promise<void> {
  const entry = { action: 'user.delete', target: { type: 'user', id }, existing: true } as const;
  await change(parts, caller, entry, async ({ trx, caller, audit, checkPreconditions }) => {
    const { user, refuseLastAdmin, allowPolicies } = await holdUser(trx, caller, id);
    await mayActOnUser(trx, caller, user, allowPolicies);
    refuseLastAdmin();
    checkPreconditions(userResource(user));
    const revoked = await revokeKeysOfUser(trx, user.tenant_id, user.id);
    await endSessionsOfUser(trx, user.id);
    await deleteUserRow(trx, user.tenant_id, user.id);
    audit.before = userResource(user);
    audit.after = { revoked_keys: revoked };
  });
}

async function shown(trx: Transaction, { tenant_id, id }: UserRow): Promise<UserResource> {
  const user = orNotFound(await findUser(trx, tenant_id, id), 'user');
  return userResource(user);
}
