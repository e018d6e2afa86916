/** Users and the roles they were given. Every look-up names the tenant, so another tenant's user is as missing as one that never was. */

import type { RoleName, TenantId, UserId } from '../../domain/ids.ts';
import type { DirectorySuspension, Metadata } from '../../domain/records.ts';
import {
  scopeBinding,
  scopeCondition,
  storedRole,
  storedTenant,
  storedUser,
  type TenantScope,
} from '../../store/paging.ts';
import { type Prepared, runPrepared } from '../../store/prepared.ts';
import type { Queryable } from '../../store/queryable.ts';
import type { DatabaseTime } from '../../store/time.ts';
import { LOCKED_UNTIL } from '../auth/failure-queries.ts';
import { makerColumns, PASSWORD_SETUP_MS, type TokenMaker } from './password-queries.ts';

export interface StoredUser {
  readonly id: UserId;
  readonly tenantId: TenantId;
  readonly email: string | null;
  readonly name: string;
  readonly department: string | null;
  readonly metadata: Metadata;
  readonly status: 'active' | 'deactivated';
  readonly source: 'local' | 'ldap';
  /** What the directory said last of the user; null for local users. */
  readonly directoryStatus: 'active' | DirectorySuspension | null;
  /** The address that the directory shows and another user has; the user has no address then. */
  readonly emailConflict: string | null;
  /** Given by hand. */
  readonly roles: readonly RoleName[];
  /** Given by the directory. */
  readonly directoryRoles: readonly RoleName[];
  /** When a login last began a session; null = never. */
  readonly lastLoginAt: Date | null;
  /** Until when failed logins lock the account; null = they do not. */
  readonly lockedUntil: Date | null;
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
  readonly metadata: Metadata;
  readonly status: 'active' | 'deactivated';
  readonly source: 'local' | 'ldap';
  readonly directory_status: StoredUser['directoryStatus'];
  readonly email_conflict: string | null;
  readonly roles: readonly string[];
  readonly directory_roles: readonly string[];
  readonly last_login_at: Date | null;
  readonly locked_until: Date | null;
  readonly created_at: Date;
  readonly updated_at: Date;
}

/** SQL: the role `r` of the user `u` is not a deleted one whose rows are still there. */
const NOT_DELETED = 'not exists (select from deleted_roles d where d.tenant_id = u.tenant_id and d.name = r.role_name)';

/** A local user has no roles of a directory, so all that the row names were given by hand. */
const COLUMNS = `u.id, u.tenant_id, u.email, u.name, u.department, u.metadata, u.status, u.source, u.created_at, u.updated_at, u.email_conflict,
    case when u.source = 'ldap' then coalesce(u.directory_suspension, 'active') end as directory_status,
    case when u.source = 'local' then array(
        select r.role_name from unnest(u.role_names) r (role_name) where ${NOT_DELETED} order by r.role_name collate "C")
      else ${rolesBy('manual')} end as roles,
    case when u.source = 'local' then '{}' else ${rolesBy('directory')} end as directory_roles,
    (select last_login_at from user_logins where user_id = u.id) as last_login_at,
    (${LOCKED_UNTIL}) as locked_until`;

function rolesBy(source: 'manual' | 'directory'): string {
  return `array(select r.role_name from user_roles r where r.user_id = u.id and r.source = '${source}' and ${NOT_DELETED}
      order by r.role_name collate "C")`;
}

/** Users as UserRow; what follows narrows `u`. */
export const USER = `select ${COLUMNS} from users u`;

const STATEMENTS = {
  lockUnlessHolder: {
    name: 'lock_user_unless_holder',
    text: `select from users u where tenant_id = $1 and id = $2
      and not exists (select from user_roles r where r.user_id = u.id and r.role_name = $3 and r.source = 'manual') for update of u`,
  },
  lock: { name: 'lock_user', text: 'select from users where tenant_id = $1 and id = $2 for update' },
  share: { name: 'share_user', text: 'select from users where tenant_id = $1 and id = $2 for share' },
  insert: {
    name: 'insert_user',
    // The names of the roles are those that are given next: then the row need not be written again for them.
    text: `with made as (
        insert into users (id, tenant_id, email, name, department, password_hash, password_changed_at, role_names, created_at, updated_at,
          metadata)
        select $1, $2, $3, $4, $5, $6, case when $6::text is null then null else at end,
          array(select distinct name from unnest($7::text[]) name order by name), at, at,
          $15::jsonb
        from (select coalesce($8::timestamptz, clock_timestamp()) as at) now
        returning id, tenant_id, status
      ), setup as (
        insert into one_time_tokens (digest, user_id, purpose, expires_at, maker_kind, maker_tenant_id, maker_id, maker_address)
        select $9, id, 'password_setup', clock_timestamp() + $10::float8 * interval '1 millisecond', $11, $12, $13, $14
        from made where $9::bytea is not null
      )
      insert into user_roles (user_id, role_name, source, tenant_id, status)
      select id, role, 'manual', tenant_id, status from made cross join unnest($7::text[]) role on conflict do nothing`,
  },
  update: {
    name: 'update_user',
    text: `update users u set email = $3, name = $4, department = $5, updated_at = coalesce($6::timestamptz, clock_timestamp()),
        metadata = $7::jsonb
      where u.tenant_id = $1 and u.id = $2`,
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
    metadata: row.metadata,
    status: row.status,
    source: row.source,
    directoryStatus: row.directory_status,
    emailConflict: row.email_conflict,
    roles: row.roles.map(storedRole),
    directoryRoles: row.directory_roles.map(storedRole),
    lastLoginAt: row.last_login_at,
    lockedUntil: row.locked_until,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}

const FIND = { name: 'find_user', text: `${USER} where u.tenant_id = $1 and u.id = $2` };

export async function findUser(q: Queryable, tenant: TenantId, id: UserId): Promise<StoredUser | undefined> {
  const [row] = await runPrepared<UserRow>(q, FIND, [tenant, id]);
  return row && toUser(row);
}

/** Holds the user's row until the transaction ends: `update` against everybody, `share` against its deletion and change alone. */
export async function lockUser(q: Queryable, tenant: TenantId, id: UserId, mode: 'update' | 'share'): Promise<boolean> {
  const rows = await runPrepared(q, mode === 'update' ? STATEMENTS.lock : STATEMENTS.share, [tenant, id]);
  return rows.length === 1;
}

/** Holds the user's row against everybody, unless the user was given the role by hand; false then, and where there is no such user. */
export async function lockUserUnlessHolder(
  q: Queryable,
  tenant: TenantId,
  id: UserId,
  role: RoleName,
): Promise<boolean> {
  return (await runPrepared(q, STATEMENTS.lockUnlessHolder, [tenant, id, role])).length === 1;
}

/** Locks these users until the transaction ends, in one order, against changes of their rows, roles and status. */
export async function lockUsers(q: Queryable, ids: readonly UserId[]): Promise<void> {
  await q.raw('select from users where id = any(cast(:ids as text[])) order by id for no key update', { ids });
}

export interface NewUser {
  readonly id: UserId;
  readonly tenantId: TenantId;
  readonly email: string | null;
  readonly name: string;
  readonly department: string | null;
  /** Default: none. */
  readonly metadata?: Metadata;
  readonly passwordHash: string | null;
  /** Given by hand; known to the user's tenant. */
  readonly roles?: readonly RoleName[];
  /** A one-time token, valid for an hour. */
  readonly passwordSetup?: { readonly digest: Uint8Array; readonly maker: TokenMaker } | undefined;
}

/** Writes a local, active user. Fails with a broken `users_email_key` when the e-mail is taken. @param at when; now, unless told */
export async function insertUser(q: Queryable, user: NewUser, at?: DatabaseTime): Promise<void> {
  const { id, tenantId, email, name, department, passwordHash, roles = [], passwordSetup, metadata = {} } = user;
  const values = [id, tenantId, email, name, department, passwordHash, roles, at?.text ?? null];
  const maker = passwordSetup === undefined ? [null, null, null, null] : makerColumns(passwordSetup.maker);
  const setup = [passwordSetup?.digest ?? null, PASSWORD_SETUP_MS, ...maker];
  await runPrepared(q, STATEMENTS.insert, [...values, ...setup, JSON.stringify(metadata)]);
}

/** Replaces what a person wrote about the user. Fails with a broken `users_email_key` when the e-mail is taken. @param at when; now, unless told */
export async function updateUser(
  q: Queryable,
  user: Pick<StoredUser, 'id' | 'tenantId' | 'email' | 'name' | 'department' | 'metadata'>,
  at?: DatabaseTime,
): Promise<void> {
  const { id, tenantId, email, name, department, metadata } = user;
  const values = [tenantId, id, email, name, department, at?.text ?? null, JSON.stringify(metadata)];
  await runPrepared(q, STATEMENTS.update, values);
}

export async function setUserStatus(
  q: Queryable,
  tenant: TenantId,
  id: UserId,
  status: StoredUser['status'],
): Promise<void> {
  await q.raw(
    'update users set status = :status, updated_at = clock_timestamp() where tenant_id = :tenant and id = :id',
    {
      tenant,
      id,
      status,
    },
  );
}

/** Makes the roles given by hand exactly these; those of the directory stay. The user's tenant must have been checked. */
export async function setManualRoles(q: Queryable, id: UserId, roles: readonly RoleName[]): Promise<void> {
  await runPrepared(q, STATEMENTS.giveRoles, [id, roles]);
}

/** Sessions, one-time tokens and given roles go with the row; keys stay, and are revoked apart. */
export async function deleteUser(q: Queryable, tenant: TenantId, id: UserId): Promise<void> {
  await q.raw('delete from users where tenant_id = :tenant and id = :id', { tenant, id });
}

/** Call it with the tenant's places locked, or its row for update, so that nobody is added before the transaction ends. */
export async function countActiveUsers(q: Queryable, tenant: TenantId): Promise<number> {
  const { rows } = await q.raw<{ rows: { n: number }[] }>(
    `select count(*)::int as n from users where tenant_id = :tenant and status = 'active'`,
    { tenant },
  );
  return rows[0]?.n ?? 0;
}

/** Whether a role is given to anybody in a tenant, by hand or by the directory. */
export async function isRoleGiven(q: Queryable, tenant: TenantId, role: RoleName): Promise<boolean> {
  const { rows } = await q.raw<{ rows: unknown[] }>(
    'select from user_roles where tenant_id = :tenant and role_name = :role limit 1',
    { tenant, role },
  );
  return rows.length > 0;
}

/** Returns the tenant of a user within the scope; undefined if there is no such user in it. */
export async function tenantOfUser(q: Queryable, scope: TenantScope, id: UserId): Promise<TenantId | undefined> {
  const { rows } = await q.raw<{ rows: { tenant_id: string }[] }>(
    `select u.tenant_id from users u where ${scopeCondition(scope, 'u.tenant_id')} and u.id = :id`,
    { ...scopeBinding(scope), id },
  );
  return rows[0] && storedTenant(rows[0].tenant_id);
}
