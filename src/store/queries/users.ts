/** Users and the roles they were given. Every look-up names the tenant, so another tenant's user is as missing as one that never was. */

import type { Knex } from 'knex';
import { Fault } from '../../domain/errors.ts';
import type { RoleName, TenantId, UserId } from '../../domain/ids.ts';
import { ASKED, readsPairs } from '../batched.ts';
import { type Prepared, runPrepared } from '../prepared.ts';
import { sentTogether } from '../together.ts';
import { type Page, scopeBinding, scopeCondition, storedRole, storedTenant, storedUser, type TenantScope } from './rows.ts';
import {
  type Asking,
  firstLooks,
  idsAmongNext,
  idsByText,
  idsInOrder,
  moreLooks,
  type Seen,
  type UserFilter,
} from './user-lists.ts';

export type { UserFilter } from './user-lists.ts';

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

/** A user as its statement gives it. */
export interface UserRow {
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

const COLUMNS = `u.id, u.tenant_id, u.email, u.name, u.department, u.status, u.source, u.created_at, u.updated_at,
    array(select role_name from user_roles where user_id = u.id and source = 'manual' order by role_name collate "C") as roles,
    array(select role_name from user_roles where user_id = u.id and source = 'directory' order by role_name collate "C") as directory_roles`;

/** Users as UserRow; what follows narrows `u`. */
export const USER = `select ${COLUMNS} from users u`;

const STATEMENTS = {
  holdsByHand: {
    name: 'user_holds_by_hand',
    text: `select from user_roles where tenant_id = $1 and user_id = $2 and role_name = $3 and source = 'manual'`,
  },
  lock: { name: 'lock_user', text: 'select from users where tenant_id = $1 and id = $2 for update' },
  share: { name: 'share_user', text: 'select from users where tenant_id = $1 and id = $2 for share' },
  insert: {
    name: 'insert_user',
    // The names of the roles are those that are given next: then the row need not be written again for them.
    text: `insert into users as u (id, tenant_id, email, name, department, password_hash, password_changed_at, role_names)
      values ($1, $2, $3, $4, $5, $6, case when $6::text is null then null else now() end,
        array(select distinct name from unnest($7::text[]) name order by name))
      returning ${COLUMNS}`,
  },
  update: {
    name: 'update_user',
    text: `update users u set email = $3, name = $4, department = $5, updated_at = clock_timestamp()
      where u.tenant_id = $1 and u.id = $2 returning ${COLUMNS}`,
  },
  addRoles: {
    name: 'add_roles',
    text: `insert into user_roles (user_id, role_name, source, tenant_id, status)
      select u.id, role, 'manual', u.tenant_id, u.status from users u cross join unnest($2::text[]) role where u.id = $1 on conflict do nothing`,
  },
  giveRoles: {
    name: 'give_roles',
    text: `with gone as (
        delete from user_roles where user_id = $1 and source = 'manual' and role_name <> all($2::text[])
      )
      insert into user_roles (user_id, role_name, source) select $1, unnest($2::text[]), 'manual' on conflict do nothing`,
  },
} as const satisfies Readonly<Record<string, Prepared>>;

export function toUser(row: UserRow): StoredUser {
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

/** In the order in which they were made. */
export async function listUsers(q: Knex, scope: TenantScope, filter: UserFilter, page: Page): Promise<readonly StoredUser[]> {
  if (filter.q === undefined || filter.email !== undefined) return usersOf(q, scope, idsInOrder(scope, filter, page));
  const first = await usersAmongNext(q, scope, filter, page, firstLooks(filter));
  if (first.enough) return first.users;
  const looks = moreLooks(filter, first, page.take);
  const more = looks === undefined ? first : await usersAmongNext(q, scope, filter, page, looks);
  return more.enough ? more.users : usersOf(q, scope, idsByText(scope, filter, page, first.marks));
}

async function usersOf(q: Knex, scope: TenantScope, { sql, bindings }: Asking): Promise<readonly StoredUser[]> {
  const { rows } = await q.raw<{ rows: UserRow[] }>(
    `${USER} where ${scopeCondition(scope, 'u.tenant_id')} and u.id = any(array(${sql})) order by u.id`,
    bindings,
  );
  return rows.map(toUser);
}

interface Looked extends Seen {
  /** The page, when that is enough. */
  readonly users: readonly StoredUser[];
}

async function usersAmongNext(q: Knex, scope: TenantScope, filter: UserFilter, page: Page, looks: number): Promise<Looked> {
  const { sql, bindings } = idsAmongNext(scope, filter, page, looks);
  // One statement, so that nobody goes between being found and being read.
  const { rows } = await q.raw<{ rows: (Partial<UserRow> & Seen)[] }>(
    `select page.enough, page.dense, page.marks, cardinality(page.ids) as found, shown.* from (${sql}) page
     left join lateral (${USER} where ${scopeCondition(scope, 'u.tenant_id')} and page.enough and u.id = any(page.ids)) shown on true
     order by shown.id`,
    bindings,
  );
  const [first] = rows;
  if (first === undefined) throw new Fault('a search saw nothing at all');
  const { enough, found, dense, marks } = first;
  return { enough, found, dense, marks, users: rows.filter(isUser).map(toUser) };
}

function isUser<R extends Partial<UserRow>>(row: R): row is R & UserRow {
  return typeof row.id === 'string';
}

const userOfPair = readsPairs<UserRow>({
  one: { name: 'find_user', text: `${USER} where u.tenant_id = $1 and u.id = $2` },
  many: {
    name: 'find_users',
    text: `select ${COLUMNS}, asked.asked_as from ${ASKED} join users u on u.tenant_id = asked.first and u.id = asked.second`,
  },
});

export async function findUser(q: Knex, tenant: TenantId, id: UserId): Promise<StoredUser | undefined> {
  const row = await userOfPair(q, tenant, id);
  return row && toUser(row);
}

/** Whether the user was given the role by hand; false for a user that is not there. */
export async function holdsByHand(q: Knex, tenant: TenantId, id: UserId, role: RoleName): Promise<boolean> {
  return (await runPrepared(q, STATEMENTS.holdsByHand, [tenant, id, role])).length > 0;
}

/** Holds the user's row until the transaction ends: `update` against everybody, `share` against its deletion and change alone. */
export async function lockUser(q: Knex, tenant: TenantId, id: UserId, mode: 'update' | 'share'): Promise<boolean> {
  const rows = await runPrepared(q, mode === 'update' ? STATEMENTS.lock : STATEMENTS.share, [tenant, id]);
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
  /** Given by hand; known to the user's tenant. */
  readonly roles?: readonly RoleName[];
}

/** Answers with the user as it is kept. Fails with a broken `users_email_key` when the e-mail is taken. */
export async function insertUser(q: Knex, user: NewUser): Promise<StoredUser> {
  const { id, tenantId, email, name, department, passwordHash, roles = [] } = user;
  const values = [id, tenantId, email, name, department, passwordHash, roles];
  const [[row]] = await sentTogether([
    runPrepared<UserRow>(q, STATEMENTS.insert, values),
    roles.length === 0 ? undefined : runPrepared(q, STATEMENTS.addRoles, [id, roles]),
  ] as const);
  if (row === undefined) throw new Fault('a user was written and not given back');
  return { ...toUser(row), roles: [...new Set(roles)].sort((left, right) => (left < right ? -1 : 1)) };
}

/** Replaces what a person wrote about the user, and answers with the user as it then is. Fails with a broken `users_email_key` when the e-mail is taken. */
export async function updateUser(
  q: Knex,
  user: Pick<StoredUser, 'id' | 'tenantId' | 'email' | 'name' | 'department'>,
): Promise<StoredUser | undefined> {
  const { id, tenantId, email, name, department } = user;
  const [row] = await runPrepared<UserRow>(q, STATEMENTS.update, [tenantId, id, email, name, department]);
  return row && toUser(row);
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
  await runPrepared(q, STATEMENTS.giveRoles, [id, roles]);
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
    'select from user_roles where tenant_id = :tenant and role_name = :role limit 1',
    { tenant, role },
  );
  return rows.length > 0;
}

/** Takes a role from everybody in a tenant. */
export async function takeRoleFromAll(q: Knex, tenant: TenantId, role: RoleName): Promise<void> {
  await q.raw('delete from user_roles where tenant_id = :tenant and role_name = :role', { tenant, role });
}

export async function userExists(q: Knex, scope: TenantScope, id: UserId): Promise<boolean> {
  const { rows } = await q.raw<{ rows: unknown[] }>(
    `select from users u where ${scopeCondition(scope, 'u.tenant_id')} and u.id = :id`,
    { ...scopeBinding(scope), id },
  );
  return rows.length === 1;
}
