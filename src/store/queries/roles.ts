/** Custom roles of one tenant. The built-in ones are code, not rows. */

import type { Knex } from 'knex';
import type { RoleName, TenantId } from '../../domain/ids.ts';
import type { ResourceConstraints } from '../../domain/records.ts';
import { type Page, scopeBinding, scopeCondition, storedRole, storedTenant, type TenantScope } from './rows.ts';

export interface StoredRole {
  readonly name: RoleName;
  readonly tenantId: TenantId;
  readonly description: string;
  readonly permissions: readonly string[];
  readonly constraints: ResourceConstraints;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

interface RoleRow {
  readonly name: string;
  readonly tenant_id: string;
  readonly description: string;
  readonly permissions: readonly string[];
  readonly resource_constraints: ResourceConstraints;
  readonly created_at: Date;
  readonly updated_at: Date;
}

const ROLE = 'select name, tenant_id, description, permissions, resource_constraints, created_at, updated_at from roles';

function toRole(row: RoleRow): StoredRole {
  return {
    name: storedRole(row.name),
    tenantId: storedTenant(row.tenant_id),
    description: row.description,
    permissions: row.permissions,
    constraints: row.resource_constraints,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}

/** By name, then tenant. */
export async function listRoles(q: Knex, scope: TenantScope, page: Page): Promise<readonly StoredRole[]> {
  const after = page.after === undefined ? 'true' : '(name collate "C", tenant_id collate "C") > (:name, :after)';
  const { rows } = await q.raw<{ rows: RoleRow[] }>(
    `${ROLE} where ${scopeCondition(scope, 'tenant_id')} and ${after}
     order by name collate "C", tenant_id collate "C" limit :take`,
    {
      ...scopeBinding(scope),
      ...(page.after === undefined ? {} : { name: page.after[0] ?? '', after: page.after[1] ?? '' }),
      take: page.take,
    },
  );
  return rows.map(toRole);
}

export async function findRole(q: Knex, tenant: TenantId, name: RoleName): Promise<StoredRole | undefined> {
  const { rows } = await q.raw<{ rows: RoleRow[] }>(`${ROLE} where tenant_id = :tenant and name = :name`, { tenant, name });
  return rows[0] && toRole(rows[0]);
}

export async function findRoles(q: Knex, tenant: TenantId, names: readonly RoleName[]): Promise<readonly StoredRole[]> {
  const { rows } = await q.raw<{ rows: RoleRow[] }>(
    `${ROLE} where tenant_id = :tenant and name = any(cast(:names as text[])) order by name collate "C"`,
    { tenant, names },
  );
  return rows.map(toRole);
}

/** Holds the rows until the transaction ends: `update` to change a role, `share` to rely on it. */
export async function lockRoles(q: Knex, tenant: TenantId, names: readonly RoleName[], mode: 'update' | 'share'): Promise<void> {
  await q.raw(
    `select from roles where tenant_id = :tenant and name = any(cast(:names as text[])) order by name collate "C" for ${mode}`,
    {
      tenant,
      names,
    },
  );
}

/** Fails with a broken `roles_pkey` when the name is taken. */
export async function insertRole(q: Knex, role: Omit<StoredRole, 'createdAt' | 'updatedAt'>): Promise<void> {
  await q.raw(
    `insert into roles (tenant_id, name, description, permissions, resource_constraints)
     values (:tenant, :name, :description, cast(:permissions as text[]), cast(:constraints as jsonb))`,
    bindings(role),
  );
}

export async function updateRole(q: Knex, role: Omit<StoredRole, 'createdAt' | 'updatedAt'>): Promise<void> {
  await q.raw(
    `update roles set description = :description, permissions = cast(:permissions as text[]), resource_constraints = cast(:constraints as jsonb),
       updated_at = clock_timestamp()
     where tenant_id = :tenant and name = :name`,
    bindings(role),
  );
}

export async function deleteRole(q: Knex, tenant: TenantId, name: RoleName): Promise<void> {
  await q.raw('delete from roles where tenant_id = :tenant and name = :name', { tenant, name });
}

function bindings(role: Omit<StoredRole, 'createdAt' | 'updatedAt'>) {
  return {
    tenant: role.tenantId,
    name: role.name,
    description: role.description,
    permissions: role.permissions,
    constraints: JSON.stringify(role.constraints),
  };
}
