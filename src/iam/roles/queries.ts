/** Statements on custom roles. Built-in roles are not in the database. */

import type { RoleName, TenantId } from '../../domain/ids.ts';
import { isBuiltinRole } from '../../domain/roles.ts';
import {
  type Page,
  type PageRows,
  pageWithinBytes,
  scopeBinding,
  scopeCondition,
  type TenantScope,
} from '../../store/paging.ts';
import { countUpTo } from '../../store/prepared.ts';
import { type Queryable, writtenRow } from '../../store/queryable.ts';
import { type FilterConditions, filterConditions } from '../list/filters.ts';
import { columnsOf, updateOf } from '../schema/entity.ts';
import { type RoleRow, type RoleValues, role } from './entity.ts';

const COLUMNS = columnsOf(role);
const roles = (q: Queryable) => q<RoleRow>('roles');
const BY_NAME = 'name collate "C"';

export interface RoleFilter {
  /** Any part of name or description, in any case. */
  readonly q?: string;
}

const CONDITIONS: FilterConditions<RoleFilter> = {
  q: `position(lower(:q) in lower(name || E'\\n' || description)) > 0`,
};

function conditionsOf(scope: TenantScope, filter: RoleFilter): string {
  return [scopeCondition(scope, 'tenant_id'), ...filterConditions(CONDITIONS, filter)].join(' and ');
}

/**
 * Lists roles by name, then tenant. With the scope of every tenant, a search reads rows in order until the page is
 * full.
 */
export async function listRoles(
  q: Queryable,
  scope: TenantScope,
  filter: RoleFilter,
  page: Page,
): Promise<PageRows<RoleRow>> {
  // Names are unique in one tenant.
  const order = scope.kind === 'one' ? BY_NAME : `${BY_NAME}, tenant_id collate "C"`;
  const [name = '', tenant = ''] = page.after ?? [];
  const beyond = scope.kind === 'one' ? ':name' : ':name, :after';
  const rows = `select ${COLUMNS.join(', ')}, octets from roles where ${conditionsOf(scope, filter)} and (${order}) > (${beyond})
       order by ${order} limit :take`;
  const after = scope.kind === 'one' ? {} : { after: tenant };
  return pageWithinBytes(q, { rows, order }, { ...scopeBinding(scope), ...filter, name, ...after }, page);
}

export async function countRoles(q: Queryable, scope: TenantScope, filter: RoleFilter, most: number): Promise<number> {
  const sql = `select from roles where ${conditionsOf(scope, filter)}`;
  return countUpTo(q, { sql, bindings: { ...scopeBinding(scope), ...filter } }, most);
}

export function findRole(q: Queryable, tenant: TenantId, name: RoleName): Promise<RoleRow | undefined> {
  return roles(q).where({ tenant_id: tenant, name }).first(COLUMNS);
}

/** Returns the custom roles of the tenant that have one of the names. */
export async function findRoles(
  q: Queryable,
  tenant: TenantId,
  names: readonly RoleName[],
): Promise<readonly RoleRow[]> {
  const custom = names.filter((name) => !isBuiltinRole(name));
  if (custom.length === 0) return [];
  return roles(q).where('tenant_id', tenant).whereIn('name', custom).orderByRaw(BY_NAME).select(COLUMNS);
}

/** Throws an error of the constraint `roles_pkey` if the name is taken. */
export async function insertRole(q: Queryable, values: RoleValues): Promise<RoleRow> {
  const now = q.raw('statement_timestamp()');
  return writtenRow(await roles(q).insert({ ...values, created_at: now, updated_at: now }, COLUMNS));
}

export async function updateRoleRow(q: Queryable, values: RoleValues): Promise<RoleRow> {
  const { tenant_id, name } = values;
  const changes = { ...updateOf(role, values), updated_at: q.raw('clock_timestamp()') };
  return writtenRow(await roles(q).where({ tenant_id, name }).update(changes, COLUMNS));
}

/**
 * Deletes a role. After the commit, it grants its users nothing. Its name stays reserved until `forgetDeletedRole` has
 * removed it from all users.
 */
export async function deleteRoleRow(q: Queryable, tenant: TenantId, name: RoleName): Promise<void> {
  await q.raw(
    `with gone as (delete from roles where tenant_id = :tenant and name = :name returning tenant_id, name)
     insert into deleted_roles (tenant_id, name) select tenant_id, name from gone
     where exists (select from user_roles where tenant_id = :tenant and role_name = :name) on conflict do nothing`,
    { tenant, name },
  );
}

/**
 * Removes a deleted role from a batch of its users, and frees its name when no user has it. It skips a user whose row
 * another transaction locks, so a batch never waits for a lock while it holds others.
 * @returns the number of users, plus 1 if the name is free again
 */
export async function forgetDeletedRole(q: Queryable, holders: number): Promise<number> {
  // A random role, so that a role whose users are all locked does not delay the others.
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
