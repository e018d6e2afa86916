/** Custom roles of one tenant. The built-in ones are code, not rows. */

import type { RoleName, TenantId } from '../../domain/ids.ts';
import type { ResourceConstraints } from '../../domain/records.ts';
import { isBuiltinRole } from '../../domain/roles.ts';
import {
  type BoundedRow,
  bytesBinding,
  type Page,
  type PageRows,
  pageRows,
  scopeBinding,
  scopeCondition,
  storedRole,
  storedTenant,
  type TenantScope,
  withinBytes,
} from '../../store/paging.ts';
import { countUpTo, type Prepared, runPrepared } from '../../store/prepared.ts';
import type { Queryable } from '../../store/queryable.ts';
import type { DatabaseTime } from '../../store/time.ts';

export interface StoredRole {
  readonly name: RoleName;
  readonly tenantId: TenantId;
  readonly description: string;
  readonly permissions: readonly string[];
  readonly constraints: ResourceConstraints;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

export type NewRole = Omit<StoredRole, 'createdAt' | 'updatedAt'>;

interface RoleRow {
  readonly name: string;
  readonly tenant_id: string;
  readonly description: string;
  readonly permissions: readonly string[];
  readonly resource_constraints: ResourceConstraints;
  readonly created_at: Date;
  readonly updated_at: Date;
}

const COLUMNS = 'name, tenant_id, description, permissions, resource_constraints, created_at, updated_at';

const ROLE = `select ${COLUMNS} from roles`;

const STATEMENTS = {
  find: { name: 'find_role', text: `${ROLE} where tenant_id = $1 and name = $2` },
  findAll: {
    name: 'find_roles',
    text: `${ROLE} where tenant_id = $1 and name = any($2::text[]) order by name collate "C"`,
  },
  insert: {
    name: 'insert_role',
    text: `insert into roles (tenant_id, name, description, permissions, resource_constraints, created_at, updated_at)
      select $1, $2, $3, $4::text[], $5::jsonb, at, at from (select coalesce($6::timestamptz, clock_timestamp()) as at) made`,
  },
  update: {
    name: 'update_role',
    text: `update roles set description = $3, permissions = $4::text[], resource_constraints = $5::jsonb, updated_at = clock_timestamp()
      where tenant_id = $1 and name = $2`,
  },
} as const satisfies Readonly<Record<string, Prepared>>;

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

export interface RoleFilter {
  /** Any part of name or description, whatever its case. */
  readonly q?: string;
}

/** SQL conditions on `roles`, with the bindings of `RoleFilter`. */
function filterConditions({ q }: RoleFilter): readonly string[] {
  return q === undefined ? [] : [`position(lower(:q) in lower(name || E'\\n' || description)) > 0`];
}

/** By name, then tenant. A tenant's roles are bounded; of every tenant, a search reads rows in order until the page is full. */
export async function listRoles(
  q: Queryable,
  scope: TenantScope,
  filter: RoleFilter,
  page: Page,
): Promise<PageRows<StoredRole>> {
  // In one tenant a name is one role's.
  const order = scope.kind === 'one' ? 'name collate "C"' : 'name collate "C", tenant_id collate "C"';
  const [name = '', tenant = ''] = page.after ?? [];
  const conditions = [scopeCondition(scope, 'tenant_id'), ...filterConditions(filter)].join(' and ');
  const beyond = scope.kind === 'one' ? ':name' : ':name, :after';
  const { rows } = await q.raw<{ rows: (RoleRow & BoundedRow)[] }>(
    withinBytes(
      `select ${COLUMNS}, octets from roles where ${conditions} and (${order}) > (${beyond})
       order by ${order} limit :take`,
      order,
    ),
    {
      ...scopeBinding(scope),
      ...filter,
      name,
      ...(scope.kind === 'one' ? {} : { after: tenant }),
      ...bytesBinding(page),
      take: page.take,
    },
  );
  return pageRows(rows, page, toRole);
}

/** Counts the roles of a list, up to `most`. */
export async function countRoles(q: Queryable, scope: TenantScope, filter: RoleFilter, most: number): Promise<number> {
  const conditions = [scopeCondition(scope, 'tenant_id'), ...filterConditions(filter)].join(' and ');
  const sql = `select from roles where ${conditions}`;
  return countUpTo(q, { sql, bindings: { ...scopeBinding(scope), ...filter } }, most);
}

export async function findRole(q: Queryable, tenant: TenantId, name: RoleName): Promise<StoredRole | undefined> {
  const [row] = await runPrepared<RoleRow>(q, STATEMENTS.find, [tenant, name]);
  return row && toRole(row);
}

/** Those of the names that are custom roles of the tenant. */
export async function findRoles(
  q: Queryable,
  tenant: TenantId,
  names: readonly RoleName[],
): Promise<readonly StoredRole[]> {
  const custom = names.filter((name) => !isBuiltinRole(name));
  if (custom.length === 0) return [];
  const rows = await runPrepared<RoleRow>(q, STATEMENTS.findAll, [tenant, custom]);
  return rows.map(toRole);
}

/** Holds the rows until the transaction ends: `update` to change a role, `share` to rely on it. */
export async function lockRoles(
  q: Queryable,
  tenant: TenantId,
  names: readonly RoleName[],
  mode: 'update' | 'share',
): Promise<void> {
  if (names.length === 0) return;
  await q.raw(
    `select from roles where tenant_id = :tenant and name = any(cast(:names as text[])) order by name collate "C" for ${mode}`,
    {
      tenant,
      names,
    },
  );
}

/** Fails with a broken `roles_pkey` when the name is taken. @param at when; now, unless told */
export async function insertRole(q: Queryable, role: NewRole, at?: DatabaseTime): Promise<void> {
  await runPrepared(q, STATEMENTS.insert, [...valuesOf(role), at?.text ?? null]);
}

export async function updateRole(q: Queryable, role: NewRole): Promise<void> {
  await runPrepared(q, STATEMENTS.update, valuesOf(role));
}

/** After the commit, the role gives no user anything. Its name stays reserved until `forgetDeletedRole` has removed it from all its holders. */
export async function deleteRole(q: Queryable, tenant: TenantId, name: RoleName): Promise<void> {
  await q.raw(
    `with gone as (delete from roles where tenant_id = :tenant and name = :name returning tenant_id, name)
     insert into deleted_roles (tenant_id, name) select tenant_id, name from gone
     where exists (select from user_roles where tenant_id = :tenant and role_name = :name) on conflict do nothing`,
    { tenant, name },
  );
}

/**
 * Removes a deleted role from a batch of its holders, and frees its name when none is left. A user whose row another transaction holds waits
 * for a later batch, so a batch never waits for a lock while it holds others.
 * @returns the number of holders, and 1 for a name that is free again
 */
export async function forgetDeletedRole(q: Queryable, holders: number): Promise<number> {
  // Any of them: a role whose holders are all held must not keep the others.
  const { rows } = await q.raw<{ rows: { tenant_id: string; name: string }[] }>(
    'select tenant_id, name from deleted_roles order by random() limit 1',
  );
  const [role] = rows;
  if (role === undefined) return 0;
  const named = { tenant: role.tenant_id, name: role.name };
  const { rows: users } = await q.raw<{ rows: { id: string }[] }>(
    `select u.id from user_roles r join users u on u.id = r.user_id where r.tenant_id = :tenant and r.role_name = :name
     limit :holders for no key update of u skip locked`,
    { ...named, holders },
  );
  await q.raw('delete from user_roles where role_name = :name and user_id = any(cast(:ids as text[]))', {
    ...named,
    ids: users.map(({ id }) => id),
  });
  const { rowCount } = await q.raw<{ rowCount: number }>(
    `delete from deleted_roles where tenant_id = :tenant and name = :name
       and not exists (select from user_roles where tenant_id = :tenant and role_name = :name)`,
    named,
  );
  return users.length + rowCount;
}

function valuesOf(role: NewRole): readonly unknown[] {
  return [role.tenantId, role.name, role.description, role.permissions, JSON.stringify(role.constraints)];
}
