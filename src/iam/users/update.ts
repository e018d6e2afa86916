/** Updates a user and the roles given to it by hand. */

import { Fault } from '../../domain/errors.ts';
import { ADMIN } from '../../domain/roles.ts';
import {
  type PresentedPassword,
  type ReauthenticationParts,
  reauthenticate,
  requireReauthentication,
  requireReauthenticationToLink,
} from '../auth/reauthenticate.ts';
import { applyingBudgets } from '../budgets/applying.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { mayActOnUser, mayGiveRoles } from '../caller/escalation.ts';
import { throwIfInvalid } from '../caller/refusals.ts';
import { change } from '../change/change.ts';
import { rateLimitErrors, storedRateLimits } from '../schema/rate-limits.ts';
import { canonicalEmail, knownRoles, withUniqueEmail } from './checks.ts';
import { type UserChanges, type UserResource, type UserRow, userResource } from './entity.ts';
import { holdUser } from './find.ts';
import { identityChange, writeIdentities } from './identities.ts';
import { discardPasswordSetups } from './password-queries.ts';
import { findUser, setManualRoles, updateUserRow } from './queries.ts';

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
  throwIfInvalid(rateLimitErrors(changes.rate_limits));
  const proof = await reauthenticate(parts, caller, id, presented);
  const entry = { action: 'user.update', target: { type: 'user', id }, existing: true } as const;
  return change(parts, caller, entry, async ({ trx, caller, audit, checkPreconditions }) => {
    const { user, refuseLastAdmin, allowPolicies } = await holdUser(trx, caller, id);
    const email = changes.email === undefined ? user.email : canonicalEmail(changes.email);
    if (user.source === 'local' && email !== user.email) await requireReauthentication(trx, caller, user, proof);
    const identities = changes.identities && (await identityChange(trx, user.tenant_id, user.id, changes.identities));
    if (identities !== undefined && identities.added.length > 0) {
      await requireReauthenticationToLink(trx, caller, user, proof);
    }
    await mayActOnUser(trx, caller, user, allowPolicies);
    checkPreconditions(userResource(user));
    refuseManaged(user, changes);
    if (changes.roles !== undefined) {
      const roles = await knownRoles(trx, user.tenant_id, changes.roles, '/roles');
      const gained = roles.filter((role) => !user.roles.includes(role));
      await mayGiveRoles(trx, caller, gained);
      if (!roles.includes(ADMIN)) refuseLastAdmin();
      await setManualRoles(trx, user.id, roles);
      // The maker of a token may not be allowed to create one for a user with these roles.
      if (gained.length > 0) {
        await discardPasswordSetups(trx, user.id);
        await (await applyingBudgets(trx, user.tenant_id)).refuseManyOfUser(user.id);
      }
    }
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
    audit.before = userResource(user);
    audit.after = userResource(changed);
    return userResource(changed);
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
