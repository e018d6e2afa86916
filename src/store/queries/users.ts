/** Users and the roles they were given. Every look-up names the tenant, so another tenant's user is as missing as one that never was. */

import type { Knex } from 'knex';
import type { RoleName, TenantId, UserId } from '../../domain/ids.ts';
import { type Page, scopeBinding, scopeCondition, storedRole, storedTenant, storedUser, type TenantScope } from './rows.ts';

export interface StoredUser {
  readonly id: UserId;
  readonly tenantId: TenantId;
  readonly email: string | null;
  readonly name: string;
  readonly department: string | null;
  readonly status: 'active' | 'deactivated';
  readonly source: 'local' | 'ldap';
  /** Given by hand. */
  readonly roles: readonly RoleName[];
  /** Given by the directory. */
  readonly directoryRoles: readonly RoleName[];
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

interface UserRow {
  readonly id: string;
  readonly tenant_id: string;
  readonly email: string | null;
  readonly name: string;
  readonly department: string | null;
  readonly status: 'active' | 'deactivated';
  readonly source: 'local' | 'ldap';
  readonly roles: readonly string[];
  readonly directory_roles: readonly string[];
  readonly created_at: Date;
  readonly updated_at: Date;
}

const USER = `select u.id, u.tenant_id, u.email, u.name, u.department, u.status, u.source, u.created_at, u.updated_at,
    array(select role_name from user_roles where user_id = u.id and source = 'manual' order by role_name collate "C") as roles,
    array(select role_name from user_roles where user_id = u.id and source = 'directory' order by role_name collate "C") as directory_roles
  from users u`;

function toUser(row: UserRow): StoredUser {
  return {
    id: storedUser(row.id),
    tenantId: storedTenant(row.tenant_id),
    email: row.email,
    name: row.name,
    department: row.department,
    status: row.status,
    source: row.source,
    roles: row.roles.map(storedRole),
    directoryRoles: row.directory_roles.map(storedRole),
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}

export interface UserFilter {
  readonly role?: string;
  readonly status?: 'active' | 'deactivated';
  /** In lower case. */
  readonly email?: string;
  /** Any part of name, e-mail or department, whatever its case. */
  readonly q?: string;
}

/** In the order in which they were made. */
export async function listUsers(q: Knex, scope: TenantScope, filter: UserFilter, page: Page): Promise<readonly StoredUser[]> {
  const conditions = [
    scopeCondition(scope, 'u.tenant_id'),
    ...(page.after === undefined ? [] : ['u.id > :after']),
    ...(filter.role === undefined ? [] : ['exists (select from user_roles r where r.user_id = u.id and r.role_name = :role)']),
    ...(filter.status === undefined ? [] : ['u.status = :status']),
    ...(filter.email === undefined ? [] : ['u.email = :email']),
    ...(filter.q === undefined
      ? []
      : [`position(lower(:q) in lower(u.name || ' ' || coalesce(u.email, '') || ' ' || coalesce(u.department, ''))) > 0`]),
  ];
  const { rows } = await q.raw<{ rows: UserRow[] }>(`${USER} where ${conditions.join(' and ')} order by u.id limit :take`, {
    ...scopeBinding(scope),
    ...filter,
    ...(page.after === undefined ? {} : { after: page.after[0] ?? '' }),
    take: page.take,
  });
  return rows.map(toUser);
}

export async function findUser(q: Knex, tenant: TenantId, id: UserId): Promise<StoredUser | undefined> {
  const { rows } = await q.raw<{ rows: UserRow[] }>(`${USER} where u.tenant_id = :tenant and u.id = :id`, { tenant, id });
  return rows[0] && toUser(rows[0]);
}

/** Holds the user's row until the transaction ends: `update` against everybody, `share` against its deletion and change alone. */
export async function lockUser(q: Knex, tenant: TenantId, id: UserId, mode: 'update' | 'share'): Promise<boolean> {
  const { rows } = await q.raw<{ rows: unknown[] }>(`select from users where tenant_id = :tenant and id = :id for ${mode}`, {
    tenant,
    id,
  });
  return rows.length === 1;
}

/**
 * Holds every active local holder of a role across the platform, in a stable order, and answers who they are. Two who take the role
 * from each other at once are served one after the other, and the second sees what the first did.
 */
export async function lockLocalHolders(q: Knex, role: RoleName): Promise<readonly UserId[]> {
  const { rows } = await q.raw<{ rows: { id: string }[] }>(
    `select u.id from users u join user_roles r on r.user_id = u.id
     where r.role_name = :role and r.source = 'manual' and u.source = 'local' and u.status = 'active'
     order by u.id for update of u, r`,
    { role },
  );
  return rows.map((row) => storedUser(row.id));
}

export interface NewUser {
  readonly id: UserId;
  readonly tenantId: TenantId;
  readonly email: string | null;
  readonly name: string;
  readonly department: string | null;
  readonly passwordHash: string | null;
}

/** Fails with a broken `users_email_key` when the e-mail is taken. */
export async function insertUser(q: Knex, user: NewUser): Promise<void> {
  await q.raw(
    `insert into users (id, tenant_id, email, name, department, password_hash, password_changed_at)
     values (:id, :tenant, :email, :name, :department, :hash, case when cast(:hash as text) is null then null else now() end)`,
    {
      id: user.id,
      tenant: user.tenantId,
      email: user.email,
      name: user.name,
      department: user.department,
      hash: user.passwordHash,
    },
  );
}

/** Replaces what a person wrote about the user. Fails with a broken `users_email_key` when the e-mail is taken. */
export async function updateUser(
  q: Knex,
  user: Pick<StoredUser, 'id' | 'tenantId' | 'email' | 'name' | 'department'>,
): Promise<void> {
  await q.raw(
    `update users set email = :email, name = :name, department = :department, updated_at = clock_timestamp()
     where tenant_id = :tenant and id = :id`,
    { id: user.id, tenant: user.tenantId, email: user.email, name: user.name, department: user.department },
  );
}

export async function setUserStatus(q: Knex, tenant: TenantId, id: UserId, status: StoredUser['status']): Promise<void> {
  await q.raw('update users set status = :status, updated_at = clock_timestamp() where tenant_id = :tenant and id = :id', {
    tenant,
    id,
    status,
  });
}

/** Makes the roles given by hand exactly these; those of the directory stay. The user's tenant must have been checked. */
export async function setManualRoles(q: Knex, id: UserId, roles: readonly RoleName[]): Promise<void> {
  await q.raw(`delete from user_roles where user_id = :id and source = 'manual' and role_name <> all(cast(:roles as text[]))`, {
    id,
    roles,
  });
  await q.raw(
    `insert into user_roles (user_id, role_name, source) select :id, unnest(cast(:roles as text[])), 'manual' on conflict do nothing`,
    { id, roles },
  );
}

/** Sessions, one-time tokens and given roles go with the row; keys stay, and are revoked apart. */
export async function deleteUser(q: Knex, tenant: TenantId, id: UserId): Promise<void> {
  await q.raw('delete from users where tenant_id = :tenant and id = :id', { tenant, id });
}

/** Call it with the tenant's row locked, so that nobody is added meanwhile. */
export async function countActiveUsers(q: Knex, tenant: TenantId): Promise<number> {
  const { rows } = await q.raw<{ rows: { n: number }[] }>(
    `select count(*)::int as n from users where tenant_id = :tenant and status = 'active'`,
    { tenant },
  );
  return rows[0]?.n ?? 0;
}

/** Whether a role is given to anybody in a tenant, by hand or by the directory. */
export async function isRoleGiven(q: Knex, tenant: TenantId, role: RoleName): Promise<boolean> {
  const { rows } = await q.raw<{ rows: unknown[] }>(
    'select from user_roles r join users u on u.id = r.user_id where u.tenant_id = :tenant and r.role_name = :role limit 1',
    { tenant, role },
  );
  return rows.length > 0;
}

/** Takes a role from everybody in a tenant. */
export async function takeRoleFromAll(q: Knex, tenant: TenantId, role: RoleName): Promise<void> {
  await q.raw(`delete from user_roles r using users u where u.id = r.user_id and u.tenant_id = :tenant and r.role_name = :role`, {
    tenant,
    role,
  });
}

export async function userExists(q: Knex, scope: TenantScope, id: UserId): Promise<boolean> {
  const { rows } = await q.raw<{ rows: unknown[] }>(
    `select from users u where ${scopeCondition(scope, 'u.tenant_id')} and u.id = :id`,
    { ...scopeBinding(scope), id },
  );
  return rows.length === 1;
}
