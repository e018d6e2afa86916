/** The actions that make the roles of a tenant be as a set-up says. */

import { Fault } from '../../domain/errors.ts';
import type { RoleName, TenantId } from '../../domain/ids.ts';
import { brokenConstraint } from '../../store/faults.ts';
import { beingRemoved } from '../roles/create.ts';
import { deleteRole, findRole, insertRole, type StoredRole, updateRole } from '../roles/queries.ts';
import { roleResource } from '../roles/resource.ts';
import type { ApplyContext, PlannedAction } from './action.ts';
import { difference } from './difference.ts';
import type { SetupError } from './read.ts';
import type { WantedRole } from './setup.ts';
import { roleView } from './view.ts';

type Parts = Omit<StoredRole, 'createdAt' | 'updatedAt'>;

/** @param wanted undefined = not the set-up's business */
export function roleActions(
  tenant: TenantId,
  wanted: readonly WantedRole[] | undefined,
  stored: readonly StoredRole[],
  prune: boolean,
  errors: SetupError[],
): readonly PlannedAction[] {
  if (wanted === undefined) return [];
  const before = new Map(stored.map((role) => [role.name, role]));
  const named = new Set(wanted.map((role) => role.name));
  const gone = prune ? stored.filter((role) => !named.has(role.name)) : [];
  return [...wanted.flatMap((role) => writing(tenant, role, before.get(role.name), errors)), ...gone.map(deletion)];
}

/** The names that roles of a tenant will have after these actions. */
export function roleNamesAfter(stored: readonly StoredRole[], actions: readonly PlannedAction[]): ReadonlySet<string> {
  const names = new Set<string>(stored.map((role) => role.name));
  for (const { verb, name } of actions) {
    if (verb === 'create') names.add(name);
    if (verb === 'delete') names.delete(name);
  }
  return names;
}

function writing(
  tenantId: TenantId,
  wanted: WantedRole,
  before: StoredRole | undefined,
  errors: SetupError[],
): readonly PlannedAction[] {
  const { name } = wanted;
  const permissions = wanted.permissions ?? before?.permissions;
  if (permissions === undefined) {
    errors.push({ path: `${wanted.at}/permissions`, message: 'This member is required for a new role.' });
    return [];
  }
  const description = wanted.description ?? before?.description ?? '';
  const constraints = wanted.constraints ?? before?.constraints ?? {};
  const after: Parts = { tenantId, name, description, permissions, constraints };
  const changes = difference(before === undefined ? {} : roleView(before), roleView(after));
  const about = { type: 'role', tenant: tenantId, name, changes, stage: 'write roles' } as const;
  if (before === undefined) return [{ ...about, verb: 'create', run: (to) => create(to, after) }];
  return changes.length === 0 ? [] : [{ ...about, verb: 'change', run: (to) => change(to, before, after) }];
}

function deletion(role: StoredRole): PlannedAction {
  return {
    verb: 'delete',
    type: 'role',
    tenant: role.tenantId,
    name: role.name,
    changes: [],
    stage: 'delete roles',
    run: async (to) => {
      await deleteRole(to.trx, role.tenantId, role.name);
      await audit(to, 'role.delete', role, { before: roleResource(role) });
    },
  };
}

async function create(to: ApplyContext, after: Parts): Promise<void> {
  await insertRole(to.trx, after).catch((error: unknown) => {
    throw brokenConstraint(error) === 'roles_deleted_name' ? beingRemoved(after.name) : error;
  });
  await audit(to, 'role.create', after, { after: roleResource(await written(to, after.tenantId, after.name)) });
}

async function change(to: ApplyContext, before: StoredRole, after: Parts): Promise<void> {
  await updateRole(to.trx, after);
  const now = await written(to, after.tenantId, after.name);
  await audit(to, 'role.update', after, { before: roleResource(before), after: roleResource(now) });
}

async function written({ trx }: ApplyContext, tenant: TenantId, name: RoleName): Promise<StoredRole> {
  const role = await findRole(trx, tenant, name);
  if (role === undefined) throw new Fault('a role that was just written no longer exists');
  return role;
}

function audit(
  to: ApplyContext,
  action: string,
  role: Parts,
  states: { before?: unknown; after?: unknown },
): Promise<void> {
  return to.audit({ action, target: { type: 'role', id: role.name }, tenant: role.tenantId, ...states });
}
