/** The actions that make the local users of a tenant be as a set-up says. A user is known by the e-mail address. */

import { Fault } from '../../domain/errors.ts';
import { makeId, type RoleName, type TenantId, type UserId } from '../../domain/ids.ts';
import type { Metadata } from '../../domain/records.ts';
import { revokeKeysOfUser } from '../api-keys/queries.ts';
import { endSessionsOfUser } from '../sessions/queries.ts';
import { discardPasswordSetups } from '../users/password-queries.ts';
import { deleteUser, findUser, type StoredUser, setManualRoles, setUserStatus, updateUser } from '../users/queries.ts';
import { userResource } from '../users/resource.ts';
import type { ApplyContext, PlannedAction } from './action.ts';
import { difference } from './difference.ts';
import type { SetupError } from './read.ts';
import type { WantedTenant, WantedUser } from './setup.ts';
import { userView } from './view.ts';

/** What rules about more than one user look at. */
export interface UserState {
  readonly status: 'active' | 'deactivated';
  readonly roles: readonly RoleName[];
}

/** A action for a user, with the user as it was and as it will be; undefined = there is none. */
export interface UserAction extends PlannedAction {
  readonly tenant: TenantId;
  readonly before: StoredUser | undefined;
  readonly after: UserState | undefined;
}

/** @param stored the local users of the tenant that the set-up names, and when it is to be pruned all others of it */
export function userActions(
  wanted: WantedTenant,
  stored: readonly StoredUser[],
  prune: boolean,
  errors: SetupError[],
): readonly UserAction[] {
  const { id, users } = wanted;
  if (users === undefined) return [];
  const before = new Map(stored.map((user) => [user.email, user]));
  const named = new Set<string | null>(users.map((user) => user.email));
  const gone = prune ? stored.filter((user) => !named.has(user.email)) : [];
  return [...users.flatMap((user) => writing(id, user, before.get(user.email), errors)), ...gone.map(deletion)];
}

function writing(
  tenant: TenantId,
  wanted: WantedUser,
  before: StoredUser | undefined,
  errors: SetupError[],
): readonly UserAction[] {
  const { email } = wanted;
  const name = wanted.name ?? before?.name;
  if (name === undefined) {
    errors.push({ path: `${wanted.at}/name`, message: 'This member is required for a new user.' });
    return [];
  }
  const after = {
    name,
    department: wanted.department === undefined ? (before?.department ?? null) : wanted.department,
    metadata: wanted.metadata ?? before?.metadata ?? {},
    roles: wanted.roles ?? before?.roles ?? [],
    status: wanted.status ?? before?.status ?? 'active',
  };
  const changes = difference(before === undefined ? {} : userView(before), userView(after));
  const about = { type: 'user', tenant, name: email, changes, stage: 'write users', before, after } as const;
  if (before === undefined) return [{ ...about, verb: 'create', run: (to) => create(to, tenant, email, after) }];
  return changes.length === 0 ? [] : [{ ...about, verb: 'change', run: (to) => change(to, before, after) }];
}

function deletion(user: StoredUser): UserAction {
  return {
    verb: 'delete',
    type: 'user',
    tenant: user.tenantId,
    name: user.email ?? user.id,
    changes: [],
    before: user,
    after: undefined,
    stage: 'delete users',
    run: (to) => remove(to, user),
  };
}

interface Parts extends UserState {
  readonly name: string;
  readonly department: string | null;
  readonly metadata: Metadata;
}

function create(to: ApplyContext, tenantId: TenantId, email: string, after: Parts): Promise<void> {
  return to.makeUser({ id: makeId('usr', to.nowMs, to.random(10)), tenantId, email, ...after });
}

/** Switching on or off is written down by itself, as the API does. */
async function change(to: ApplyContext, before: StoredUser, after: Parts): Promise<void> {
  const { trx } = to;
  const { id, tenantId } = before;
  const { name, department, metadata } = after;
  await updateUser(trx, { id, tenantId, email: before.email, name, department, metadata });
  await setManualRoles(trx, id, after.roles);
  // Like in the API: who had the token made may not be allowed to make one for a user with these roles.
  if (after.roles.some((role) => !before.roles.includes(role))) await discardPasswordSetups(trx, id);
  if (after.status !== before.status) {
    await setUserStatus(trx, tenantId, id, after.status);
    if (after.status === 'deactivated') {
      await endSessionsOfUser(trx, id);
      await discardPasswordSetups(trx, id);
    }
    const action = after.status === 'active' ? 'user.activate' : 'user.deactivate';
    await audit(to, action, before, { before: { status: before.status }, after: { status: after.status } });
  }
  if (difference(userView({ ...before, status: after.status }), userView(after)).length > 0) {
    const now = await written(to, tenantId, id);
    await audit(to, 'user.update', before, { before: userResource(before), after: userResource(now) });
  }
}

/** Sessions end, keys are revoked, and the email address is free again. */
async function remove(to: ApplyContext, user: StoredUser): Promise<void> {
  await endSessionsOfUser(to.trx, user.id);
  const revoked = await revokeKeysOfUser(to.trx, user.tenantId, user.id);
  await deleteUser(to.trx, user.tenantId, user.id);
  await audit(to, 'user.delete', user, { before: userResource(user), after: { revoked_keys: revoked } });
}

async function written({ trx }: ApplyContext, tenant: TenantId, id: UserId): Promise<StoredUser> {
  const user = await findUser(trx, tenant, id);
  if (user === undefined) throw new Fault('a user that was just written no longer exists');
  return user;
}

function audit(
  to: ApplyContext,
  action: string,
  user: Pick<StoredUser, 'id' | 'tenantId'>,
  states: { before?: unknown; after?: unknown },
): Promise<void> {
  return to.audit({ action, target: { type: 'user', id: user.id }, tenant: user.tenantId, ...states });
}
