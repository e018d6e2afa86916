/**
 * Creates and updates users and the roles given to them by hand, and deactivates, activates, unlocks and deletes users.
 * A deactivation ends the user's sessions, and disables the user's keys until the user is activated again.
 */

import type { Static } from 'typebox';
import { Fault, Refusal } from '../../domain/errors.ts';
import { makeId, type TenantId } from '../../domain/ids.ts';
import { ADMIN } from '../../domain/roles.ts';
import { makeOneTimeToken } from '../../identity/opaque-tokens.ts';
import { passwordProblems } from '../../identity/password-rules.ts';
import { databaseTime } from '../../store/time.ts';
import type { Transaction } from '../../store/transaction.ts';
import { revokeKeysOfUser } from '../api-keys/queries.ts';
import { clearFailuresOfUser } from '../auth/failure-queries.ts';
import {
  type PresentedPassword,
  type ReauthenticationParts,
  reauthenticate,
  requireReauthentication,
} from '../auth/reauthenticate.ts';
import { applyingBudgets } from '../budgets/applying.ts';
import { type AdminParts, type Caller, isOwnUser } from '../caller/caller.ts';
import { mayActOnUser, mayGiveRoles } from '../caller/escalation.ts';
import { orNotFound, throwIfInvalid } from '../caller/refusals.ts';
import { change, recorded } from '../change/change.ts';
import { revealOnce } from '../change/idempotency.ts';
import { rateLimitErrors, storedRateLimits } from '../schema/rate-limits.ts';
import { endSessions } from '../sessions/queries.ts';
import { canonicalEmail, knownRoles, reserveSeat, withUniqueEmail } from './checks.ts';
import {
  type CreatedUser,
  type NewUser,
  type UserChanges,
  type UserResource,
  type UserRow,
  userResource,
} from './entity.ts';
import { holdUser } from './find.ts';
import { identityChange, writeIdentities } from './identities.ts';
import { makerOf } from './maker.ts';
import { discardPasswordSetups } from './password-queries.ts';
import { deleteUserRow, findUser, insertUser, setManualRoles, setUserStatus, updateUserRow } from './queries.ts';

/** @throws Refusal `invalid_field`, `escalation`, `already_exists`, `quota_exceeded` */
export async function createUser(
  parts: AdminParts,
  caller: Caller,
  request: Omit<NewUser, 'tenant_id'>,
): Promise<Static<typeof CreatedUser>> {
  const email = canonicalEmail(request.email);
  const { name, department = null, password } = request;
  throwIfInvalid(rateLimitErrors(request.rate_limits));
  const password_hash = password === undefined ? null : await hashed(parts, caller.tenant, password, { email, name });
  const setup = password === undefined ? makeOneTimeToken(parts.random) : undefined;
  const id = makeId('usr', caller.nowMs, parts.random(10));
  const entry = { action: 'user.create', target: { type: 'user', id } } as const;
  const resource = await change(parts, caller, entry, async ({ trx, caller, audit }) => {
    const { tenant } = caller;
    const roles = await knownRoles(trx, tenant, request.roles ?? [], '/roles');
    const at = await databaseTime(trx);
    await mayGiveRoles(trx, caller, roles);
    await reserveSeat(trx, tenant);
    const columns = {
      id,
      tenant_id: tenant,
      email,
      name,
      department,
      metadata: request.metadata ?? {},
      rate_limits: storedRateLimits(request.rate_limits ?? null),
      password_hash,
    };
    const passwordSetup = setup && { digest: setup.digest, maker: makerOf(caller) };
    await withUniqueEmail(insertUser(trx, { ...columns, roles, passwordSetup }, at));
    if (request.identities !== undefined) {
      const identities = await identityChange(trx, tenant, undefined, request.identities);
      await writeIdentities(trx, caller, id, identities);
    }
    if (roles.length > 0) await (await applyingBudgets(trx, tenant)).refuseManyOfUser(id);
    const user = await findUser(trx, tenant, id);
    if (user === undefined) throw new Fault('a new user is missing');
    return recorded(audit, undefined, userResource(user));
  });
  return { ...resource, ...(setup === undefined ? {} : revealOnce(caller, { password_setup_token: setup.text })) };
}

async function hashed(
  parts: AdminParts,
  tenant: TenantId,
  password: string,
  owner: { readonly email: string; readonly name: string },
): Promise<string> {
  throwIfInvalid(passwordProblems(password, owner).map((message) => ({ path: '/password', message })));
  return parts.passwords.hash(password, tenant);
}

/**
 * Absent members stay as they are.
 * @throws Refusal `not_found`, `invalid_field`, `escalation`, `last_admin`, `already_exists`;
 *   `reauthentication_required` and `too_many_attempts` for a new email address or identity of the caller
 */
export async function updateUser(
  parts: AdminParts & ReauthenticationParts,
  caller: Caller,
  id: string,
  changes: UserChanges,
  presented: PresentedPassword,
): Promise<UserResource> {
  const proof = await reauthenticate(parts, caller, id, presented);
  const entry = { action: 'user.update', target: { type: 'user', id }, existing: true } as const;
  return change(parts, caller, entry, async ({ trx, caller, audit, checkPreconditions }) => {
    const { user, refuseLastAdmin } = await holdUser(trx, caller, id);
    const email = changes.email === undefined ? user.email : canonicalEmail(changes.email);
    // The email address of a user of a directory does not change here.
    const setsEmail = email !== user.email && user.source !== 'ldap';
    const identities = changes.identities && (await identityChange(trx, user.tenant_id, user.id, changes.identities));
    if (setsEmail || (identities !== undefined && identities.added.length > 0)) {
      await requireReauthentication(trx, caller, user, proof);
    }
    await mayActOnUser(trx, caller, user);
    checkPreconditions(userResource(user));
    throwIfInvalid(rateLimitErrors(changes.rate_limits));
    refuseManaged(user, changes);
    if (changes.roles !== undefined) {
      const roles = await knownRoles(trx, user.tenant_id, changes.roles, '/roles');
      const gained = roles.filter((role) => !user.roles.includes(role));
      await mayGiveRoles(trx, caller, gained);
      if (!roles.includes(ADMIN)) refuseLastAdmin();
      await setManualRoles(trx, user.id, roles);
      // The maker of a token may not be allowed to create one for a user with these roles.
      if (gained.length > 0) {
        await discardPasswordSetups(trx, [user.id]);
        await (await applyingBudgets(trx, user.tenant_id)).refuseManyOfUser(user.id);
      }
    }
    // A token may have been sent to the former address.
    if (setsEmail) await discardPasswordSetups(trx, [user.id]);
    if (identities !== undefined) await writeIdentities(trx, caller, user.id, identities);
    const columns = {
      id: user.id,
      tenant_id: user.tenant_id,
      email,
      name: changes.name ?? user.name,
      department: changes.department === undefined ? user.department : changes.department,
      metadata: changes.metadata === undefined ? user.metadata : (changes.metadata ?? {}),
      rate_limits: changes.rate_limits === undefined ? user.rate_limits : storedRateLimits(changes.rate_limits),
    };
    await withUniqueEmail(updateUserRow(trx, columns));
    const changed = await findUser(trx, user.tenant_id, user.id);
    if (changed === undefined) throw new Fault('a locked user is missing');
    return recorded(audit, userResource(user), userResource(changed));
  });
}

/**
 * The directory manages email address and name of its users, and writes them at each login. A request may repeat the
 * stored values.
 */
function refuseManaged(user: UserRow, changes: UserChanges): void {
  if (user.source !== 'ldap') return;
  const email = changes.email === undefined || canonicalEmail(changes.email) === user.email;
  const name = changes.name === undefined || changes.name === user.name;
  throwIfInvalid([
    ...(email
      ? []
      : [{ path: '/email', message: 'The directory manages the email address of this user. Change it there.' }]),
    ...(name ? [] : [{ path: '/name', message: 'The directory manages the name of this user. Change it there.' }]),
  ]);
}

/** @throws Refusal `not_found`, `escalation`, `last_admin` */
export async function deactivateUser(parts: AdminParts, caller: Caller, id: string): Promise<UserResource> {
  const entry = { action: 'user.deactivate', target: { type: 'user', id }, existing: true } as const;
  return change(parts, caller, entry, async ({ trx, caller, audit, checkPreconditions }) => {
    const { user, refuseLastAdmin } = await holdUser(trx, caller, id);
    await mayActOnUser(trx, caller, user);
    refuseLastAdmin();
    checkPreconditions(userResource(user));
    if (user.status === 'active') await setUserStatus(trx, user.tenant_id, [user.id], 'deactivated');
    await endSessions(trx, { user_id: user.id });
    await discardPasswordSetups(trx, [user.id]);
    audit.before = { status: user.status };
    audit.after = { status: 'deactivated' };
    return shown(trx, user);
  });
}

/** @throws Refusal `not_found`, `escalation`, `quota_exceeded` */
export async function activateUser(parts: AdminParts, caller: Caller, id: string): Promise<UserResource> {
  const entry = { action: 'user.activate', target: { type: 'user', id }, existing: true } as const;
  return change(parts, caller, entry, async ({ trx, caller, audit, checkPreconditions }) => {
    const { user } = await holdUser(trx, caller, id);
    await mayActOnUser(trx, caller, user);
    if (user.status === 'deactivated') await reserveSeat(trx, user.tenant_id);
    checkPreconditions(userResource(user));
    if (user.status === 'deactivated') await setUserStatus(trx, user.tenant_id, [user.id], 'active');
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
    const { user } = await holdUser(trx, caller, id);
    if (isOwnUser(caller, user.id)) throw ownUnlock();
    await mayActOnUser(trx, caller, user);
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
    const { user, refuseLastAdmin } = await holdUser(trx, caller, id);
    await mayActOnUser(trx, caller, user);
    refuseLastAdmin();
    checkPreconditions(userResource(user));
    const revoked = await revokeKeysOfUser(trx, user.tenant_id, user.id);
    await endSessions(trx, { user_id: user.id });
    await deleteUserRow(trx, user.tenant_id, user.id);
    audit.before = userResource(user);
    audit.after = { revoked_keys: revoked };
  });
}

async function shown(trx: Transaction, { tenant_id, id }: UserRow): Promise<UserResource> {
  const user = orNotFound(await findUser(trx, tenant_id, id), 'user');
  return userResource(user);
}
