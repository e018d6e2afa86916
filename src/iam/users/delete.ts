/**
 * Deletes a user. Its sessions end, its keys are revoked, and its email address is free again. Upkeep removes the rows of the sessions
 * later, in batches.
 */

import { revokeKeysOfUser } from '../api-keys/queries.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { mayActOnUser } from '../caller/escalation.ts';
import { change } from '../change/change.ts';
import { endSessionsOfUser } from '../sessions/queries.ts';
import { holdUser } from './find.ts';
import { deleteUser as removeUser } from './queries.ts';
import { userResource } from './resource.ts';

/** @throws Refusal `not_found`, `escalation`, `last_admin` */
export async function deleteUser(parts: AdminParts, caller: Caller, id: string): Promise<void> {
  await change(
    parts,
    caller,
    { action: 'user.delete', target: { type: 'user', id }, existing: true },
    async ({ trx, caller, audit, checkPreconditions }) => {
      const { user, refuseLastAdmin, allowPolicies } = await holdUser(trx, caller, id);
      await mayActOnUser(trx, caller, user, allowPolicies);
      refuseLastAdmin();
      checkPreconditions(userResource(user));
      const revoked = await revokeKeysOfUser(trx, user.tenantId, user.id);
      await endSessionsOfUser(trx, user.id);
      await removeUser(trx, user.tenantId, user.id);
      audit.before = userResource(user);
      audit.after = { revoked_keys: revoked };
    },
  );
}
