/** The local users of a tenant in a setup file. The email address identifies a user. */

import { Fault } from '../../domain/errors.ts';
import { makeId, type TenantId } from '../../domain/ids.ts';
import { revokeKeysOfUser } from '../api-keys/queries.ts';
import { endSessionsOfUser } from '../sessions/queries.ts';
import { discardPasswordSetups } from '../users/password-queries.ts';
import { deleteUser, findUser, type StoredUser, setManualRoles, setUserStatus, updateUser } from '../users/queries.ts';
import { userResource } from '../users/resource.ts';
import type { ApplyContext, PlannedAction } from './action.ts';
import { difference, type SetupMembers, viewOf, type Wanted } from './members.ts';
import type { SetupResource } from './resource-plan.ts';
import { metadataView } from './tenants.ts';

export type UserValues = Pick<StoredUser, 'name' | 'department' | 'metadata' | 'roles' | 'status'>;
export type WantedUser = Wanted<UserValues, string>;
export type UserAction = PlannedAction<StoredUser, UserValues>;

export const USER_MEMBERS: SetupMembers<UserValues> = {
  name: {},
  department: { empty: null },
  metadata: { empty: {}, view: metadataView },
  roles: { empty: [], view: (roles) => roles.toSorted() },
  status: { initial: 'active' },
};

export function userResources(tenant: TenantId): SetupResource<StoredUser, UserValues, string> {
  return {
    type: 'user',
    tenant,
    members: USER_MEMBERS,
    keyOf: (user) => user.email ?? user.id,
    create: ({ nowMs, random, insertUser }, email, values) =>
      insertUser({ id: makeId('usr', nowMs, random(10)), tenantId: tenant, email, ...values }),
    change,
    remove,
  };
}

/** A change of the status has an audit row of its own, as in the API. */
async function change(context: ApplyContext, before: StoredUser, after: UserValues): Promise<void> {
  const { trx } = context;
  const { id, tenantId } = before;
  const { name, department, metadata } = after;
  await updateUser(trx, { id, tenantId, email: before.email, name, department, metadata });
  await setManualRoles(trx, id, after.roles);
  // As in the API: the creator of a token may not have the permissions of the new roles.
  if (after.roles.some((role) => !before.roles.includes(role))) await discardPasswordSetups(trx, id);
  if (after.status !== before.status) {
    await setUserStatus(trx, tenantId, id, after.status);
    if (after.status === 'deactivated') {
      await endSessionsOfUser(trx, id);
      await discardPasswordSetups(trx, id);
    }
    const action = after.status === 'active' ? 'user.activate' : 'user.deactivate';
    await audit(context, action, before, { before: { status: before.status }, after: { status: after.status } });
  }
  const onlyStatus = viewOf(USER_MEMBERS, { ...before, status: after.status });
  if (difference(onlyStatus, viewOf(USER_MEMBERS, after)).length === 0) return;
  const user = await findUser(trx, tenantId, id);
  if (user === undefined) throw new Fault('a user that was just written no longer exists');
  await audit(context, 'user.update', before, { before: userResource(before), after: userResource(user) });
}

/** Ends the sessions, revokes the keys and deletes the user. The email address is then free. */
async function remove(context: ApplyContext, user: StoredUser): Promise<void> {
  await endSessionsOfUser(context.trx, user.id);
  const revoked = await revokeKeysOfUser(context.trx, user.tenantId, user.id);
  await deleteUser(context.trx, user.tenantId, user.id);
  await audit(context, 'user.delete', user, { before: userResource(user), after: { revoked_keys: revoked } });
}

function audit(
  context: ApplyContext,
  action: string,
  { id, tenantId }: StoredUser,
  states: { readonly before: unknown; readonly after: unknown },
): Promise<void> {
  return context.audit({ action, target: { type: 'user', id }, tenant: tenantId, ...states });
}
