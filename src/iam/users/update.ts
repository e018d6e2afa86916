/** Changing what is written about a user, and the roles given by hand. */

import type { Metadata } from '../../domain/records.ts';
import { ADMIN } from '../../domain/roles.ts';
import {
  type PresentedPassword,
  type ReauthenticationParts,
  reauthenticate,
  requireReauthentication,
} from '../auth/reauthenticate.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { mayActOnUser, mayGiveRoles } from '../caller/escalation.ts';
import { throwIfInvalid } from '../caller/refusals.ts';
import { change } from '../change/change.ts';
import { canonicalEmail, withUniqueEmail } from './email.ts';
import { holdUser } from './find.ts';
import { discardPasswordSetups } from './password-queries.ts';
import { type StoredUser, setManualRoles, updateUser as writeUser } from './queries.ts';
import { type UserResource, userResource } from './resource.ts';
import { knownRoles, sortedRoles } from './roles.ts';

/** Absent members stay as they are. */
export interface UserChanges {
  readonly email?: string;
  readonly name?: string;
  readonly department?: string | null;
  /** Replaces all pairs; null removes them. */
  readonly metadata?: Metadata | null;
  readonly roles?: readonly string[];
}

/**
 * @throws Refusal `not_found`, `invalid_field`, `escalation`, `last_admin`, `already_exists`; `reauthentication_required` and
 *   `too_many_attempts` for a new email address of the caller
 */
export async function updateUser(
  parts: AdminParts & ReauthenticationParts,
  caller: Caller,
  id: string,
  changes: UserChanges,
  presented: PresentedPassword,
): Promise<UserResource> {
  const proof = await reauthenticate(parts, caller, id, presented);
  return change(
    parts,
    caller,
    { action: 'user.update', target: { type: 'user', id }, existing: true },
    async ({ trx, caller, audit, checkPreconditions }) => {
      const { user, refuseLastAdmin, allowPolicies, at } = await holdUser(trx, caller, id);
      const email = changes.email === undefined ? user.email : canonicalEmail(changes.email);
      if (user.source === 'local' && email !== user.email) await requireReauthentication(trx, caller, user, proof);
      await mayActOnUser(trx, caller, user, allowPolicies);
      checkPreconditions(userResource(user));
      refuseKept(user, changes);
      let given = user.roles;
      if (changes.roles !== undefined) {
        const roles = await knownRoles(trx, user.tenantId, changes.roles, '/roles');
        const gained = roles.filter((role) => !user.roles.includes(role));
        await mayGiveRoles(trx, caller, gained);
        if (!roles.includes(ADMIN)) refuseLastAdmin();
        await setManualRoles(trx, user.id, roles);
        given = sortedRoles(roles);
        // Whoever had it made may not have been allowed to make one for a user with these roles.
        if (gained.length > 0) await discardPasswordSetups(trx, user.id);
      }
      const changed: StoredUser = {
        ...user,
        email,
        name: changes.name ?? user.name,
        department: changes.department === undefined ? user.department : changes.department,
        metadata: changes.metadata === undefined ? user.metadata : (changes.metadata ?? {}),
        roles: given,
        updatedAt: at.date,
      };
      await withUniqueEmail(writeUser(trx, changed, at));
      audit.before = userResource(user);
      audit.after = userResource(changed);
      return userResource(changed);
    },
  );
}

/** E-mail and name of a directory's user are what the directory says, again at each login; repeating them is no change. */
function refuseKept(user: StoredUser, changes: UserChanges): void {
  if (user.source === 'local') return;
  const email = changes.email === undefined || canonicalEmail(changes.email) === user.email;
  const name = changes.name === undefined || changes.name === user.name;
  throwIfInvalid([
    ...(email
      ? []
      : [{ path: '/email', message: 'The directory manages the email address of this user. Change it there.' }]),
    ...(name ? [] : [{ path: '/name', message: 'The directory manages the name of this user. Change it there.' }]),
  ]);
}
