/** The local users of a tenant in a setup file. The email address identifies a user. */

import { Fault } from '../../domain/errors.ts';
import { makeId, type TenantId } from '../../domain/ids.ts';
import { revokeKeysOfUser } from '../api-keys/queries.ts';
import { endSessions } from '../sessions/queries.ts';
import { type UserRow, userResource } from '../users/entity.ts';
import { discardPasswordSetups } from '../users/password-queries.ts';
import { deleteUserRow, findUser, setManualRoles, setUserStatus, updateUserRow } from '../users/queries.ts';
import type { ApplyContext, PlannedAction } from './action.ts';
import { difference, type SetupMembers, viewOf, type Wanted } from './members.ts';
import type { SetupResource } from './resource-plan.ts';
import { metadataView } from './tenants.ts';

export type UserValues = Pick<UserRow, 'name' | 'department' | 'metadata' | 'rate_limits' | 'roles' | 'status'>;
export type WantedUser = Wanted<UserValues, string>;
export type UserAction = PlannedAction<UserRow, UserValues>;

export const USER_MEMBERS: SetupMembers<UserValues> = {
  name: {},
  department: { empty: null },
  metadata: { empty: {}, view: metadataView },
  rate_limits: { empty: null },
  roles: { empty: [], view: (roles) => roles.toSorted() },
  status: { initial: 'active' },
};

export function userResources(tenant: TenantId): SetupResource<UserRow, UserValues, string> {
  return {
    type: 'user',
    tenant,
    members: USER_MEMBERS,
    keyOf: (user) => user.email ?? user.id,
    create: ({ nowMs, random, insertUser }, email, values) =>
      insertUser({ id: makeId('usr', nowMs, random(10)), tenant_id: tenant, email, ...values }),
    change,
    remove,
  };
}

/** A change of the status has an audit row of its own, as in the API. */
async function change(context: ApplyContext, before: UserRow, after: UserValues): Promise<void> {
  const { trx } = context;
  const { id, tenant_id } = before;
  const { name, department, metadata, rate_limits } = after;
  await updateUserRow(trx, { id, tenant_id, email: before.email, name, department, metadata, rate_limits });
  await setManualRoles(trx, id, after.roles);
  // As in the API: the creator of a token may not have the permissions of the new roles.
  if (after.roles.some((role) => !before.roles.includes(role))) await discardPasswordSetups(trx, [id]);
  if (after.status !== before.status) {
    await setUserStatus(trx, tenant_id, [id], after.status);
    if (after.status === 'deactivated') {
      await endSessions(trx, { user_id: id });
      await discardPasswordSetups(trx, [id]);
    }
    const action = after.status === 'active' ? 'user.activate' : 'user.deactivate';
    await audit(context, action, before, { before: { status: before.status }, after: { status: after.status } });
  }
  const onlyStatus = viewOf(USER_MEMBERS, { ...before, status: after.status });
  if (difference(onlyStatus, viewOf(USER_MEMBERS, after)).length === 0) return;
  const user = await findUser(trx, tenant_id, id);
  if (user === undefined) throw new Fault('a user that was just written no longer exists');
  await audit(context, 'user.update', before, { before: userResource(before), after: userResource(user) });
}

/** Ends the sessions, revokes the keys and deletes the user. The email address is then free. */
async function remove(context: ApplyContext, user: UserRow): Promise<void> {
  await endSessions(context.trx, { user_id: user.id });
  const revoked = await revokeKeysOfUser(context.trx, user.tenant_id, user.id);
  await deleteUserRow(context.trx, user.tenant_id, user.id);
  await audit(context, 'user.delete', user, { before: userResource(user), after: { revoked_keys: revoked } });
}

function audit(
  context: ApplyContext,
  action: string,
  { id, tenant_id }: UserRow,
  states: { readonly before: unknown; readonly after: unknown },
): Promise<void> {
  return context.audit({ action, target: { type: 'user', id }, tenant: tenant_id, ...states });
}
