/** The roles of a tenant in a setup file. */

import type { RoleName, TenantId } from '../../domain/ids.ts';
import type { ResourceConstraints } from '../../domain/records.ts';
import { brokenConstraint } from '../../store/faults.ts';
import { type RoleRow, type RoleValues, roleResource } from '../roles/entity.ts';
import { deleteRoleRow, insertRole, updateRoleRow } from '../roles/queries.ts';
import { beingRemoved } from '../roles/write.ts';
import type { PlannedAction } from './action.ts';
import type { SetupMembers, View, Wanted } from './members.ts';
import { auditedWriters, type SetupResource } from './resource-plan.ts';

type Values = Omit<RoleValues, 'tenant_id' | 'name'>;
export type WantedRole = Wanted<Values, RoleName>;
export type RoleAction = PlannedAction<RoleRow, Values, RoleName>;

export const ROLE_MEMBERS: SetupMembers<Values> = {
  description: { empty: '' },
  permissions: {},
  resource_constraints: { empty: {}, view: constraintsView },
};

export function roleResources(tenant: TenantId): SetupResource<RoleRow, Values, RoleName> {
  return {
    type: 'role',
    tenant,
    members: ROLE_MEMBERS,
    keyOf: (row) => row.name,
    ...auditedWriters<RoleRow, Values, RoleName>({
      type: 'role',
      idOf: (row) => row.name,
      tenantOf: (row) => row.tenant_id,
      show: roleResource,
      insert: ({ trx }, name, values) =>
        insertRole(trx, { tenant_id: tenant, name, ...values }).catch((error: unknown) => {
          throw brokenConstraint(error) === 'roles_deleted_name' ? beingRemoved(name) : error;
        }),
      update: ({ trx }, before, values) => updateRoleRow(trx, { ...before, ...values }),
      remove: ({ trx }, row) => deleteRoleRow(trx, tenant, row.name),
    }),
  };
}

/** Includes kinds that this version does not know, because a file without them would grant more when it is applied. */
function constraintsView({ models, collections, agents, ...others }: ResourceConstraints): View {
  const kinds = Object.entries({ models, collections, agents, ...others });
  return Object.fromEntries(kinds.filter(([, names]) => names !== undefined && names !== null));
}
