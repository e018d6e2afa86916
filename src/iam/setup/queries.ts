/** Statements that read, lock or write many resources for a setup. */

import type { TenantId, UserId } from '../../domain/ids.ts';
import type { Queryable } from '../../store/queryable.ts';
import type { UserRow } from '../users/entity.ts';
import { USER } from '../users/queries.ts';

/** The lock for the application of a setup. */
const SETUP_LOCK = 726_543_496;

export async function lockSetup(trx: Queryable): Promise<void> {
  await trx.raw('select pg_advisory_xact_lock(?)', [SETUP_LOCK]);
}

/** Returns the ids that belong to a deleted tenant. */
export async function deletedTenants(q: Queryable, ids: readonly TenantId[]): Promise<ReadonlySet<TenantId>> {
  const { rows } = await q.raw<{ rows: { id: TenantId }[] }>(
    'select id from tenants where id = any(cast(:ids as text[])) and deleted_at is not null',
    { ids },
  );
  return new Set(rows.map(({ id }) => id));
}

/**
 * Locks these tenants and all their roles, policies, issuers, webhooks and budgets until the transaction ends. Logins,
 * deliveries and bookings that refer to an issuer, a webhook or a budget do not wait for it.
 */
export async function lockTenants(trx: Queryable, ids: readonly TenantId[]): Promise<void> {
  await trx.raw('select from tenants where id = any(cast(:ids as text[])) order by id collate "C" for update', { ids });
  await trx.raw(
    'select from roles where tenant_id = any(cast(:ids as text[])) order by tenant_id collate "C", name collate "C" for update',
    { ids },
  );
  for (const table of ['issuers', 'webhooks', 'budgets'])
    await trx.raw('select from :table: where tenant_id = any(cast(:ids as text[])) order by id for no key update', {
      table,
      ids,
    });
  await trx.raw('select from policies where tenant_id = any(cast(:ids as text[])) order by id for update', { ids });
}

export async function lockGlobalPolicies(trx: Queryable): Promise<void> {
  await trx.raw('select from policies where tenant_id is null order by id for update');
}

/** Locks the users with these email addresses, and all local users of these tenants that have an email address. */
export async function lockUsersOfSetup(
  trx: Queryable,
  emails: readonly string[],
  tenants: readonly TenantId[],
): Promise<void> {
  await trx.raw(
    `select from users
     where email = any(cast(:emails as text[])) or (source = 'local' and email is not null and tenant_id = any(cast(:tenants as text[])))
     order by id for update`,
    { emails, tenants },
  );
}

/**
 * Returns the users with these email addresses in any tenant, and all local users of these tenants that have one, by
 * address.
 */
export async function usersForSetup(
  q: Queryable,
  emails: readonly string[],
  tenants: readonly TenantId[],
): Promise<readonly UserRow[]> {
  const { rows } = await q.raw<{ rows: UserRow[] }>(
    `${USER}
     where u.email = any(cast(:emails as text[])) or (u.source = 'local' and u.email is not null and u.tenant_id = any(cast(:tenants as text[])))
     order by u.email collate "C", u.id`,
    { emails, tenants },
  );
  return rows;
}

export interface NewSetupUser
  extends Pick<UserRow, 'id' | 'tenant_id' | 'name' | 'department' | 'metadata' | 'rate_limits' | 'status' | 'roles'> {
  readonly email: string;
}

/** Inserts users without passwords. Throws an error of the constraint `users_email_key` if an address is taken. */
export async function insertUsers(trx: Queryable, users: readonly NewSetupUser[]): Promise<readonly UserRow[]> {
  await trx.raw(
    `insert into users (id, tenant_id, email, name, department, status, metadata, rate_limits)
     select id, tenant_id, email, name, department, status, metadata, rate_limits from jsonb_to_recordset(cast(:users as jsonb))
       as r(id text, tenant_id text, email text, name text, department text, status text, metadata jsonb, rate_limits jsonb)`,
    { users: JSON.stringify(users) },
  );
  await trx.raw(
    `insert into user_roles (user_id, role_name, source)
     select user_id, role_name, 'manual' from unnest(cast(:ids as text[]), cast(:roles as text[])) as r(user_id, role_name)`,
    { ids: users.flatMap((user) => user.roles.map(() => user.id)), roles: users.flatMap((user) => user.roles) },
  );
  const { rows } = await trx.raw<{ rows: UserRow[] }>(`${USER} where u.id = any(:ids)`, {
    ids: users.map(({ id }) => id),
  });
  const inserted = new Map(rows.map((row) => [row.id, row]));
  return users.flatMap(({ id }) => inserted.get(id) ?? []);
}

/** Reads a tenant's local users that have an email address, by address, in batches. It needs a transaction. */
export async function* localUsers(
  trx: Queryable,
  tenant: TenantId,
  atOnce: number,
): AsyncGenerator<readonly UserRow[]> {
  await trx.raw(
    `declare local_users no scroll cursor for
     ${USER} where u.tenant_id = :tenant and u.source = 'local' and u.email is not null order by u.email collate "C"`,
    { tenant },
  );
  for (;;) {
    const { rows } = await trx.raw<{ rows: UserRow[] }>(`fetch ${Math.trunc(atOnce)} from local_users`);
    if (rows.length === 0) break;
    yield rows;
  }
  await trx.raw('close local_users');
}

/**
 * Counts the tenant's users that a setup file cannot contain: those of a directory, and those without an email address.
 */
export async function countOtherUsers(q: Queryable, tenant: TenantId): Promise<number> {
  const { rows } = await q.raw<{ rows: { n: number }[] }>(
    `select count(*)::int as n from users where tenant_id = :tenant and (source <> 'local' or email is null)`,
    { tenant },
  );
  return rows[0]?.n ?? 0;
}

interface RoleHolder {
  readonly id: UserId;
  readonly email: string | null;
  readonly manual: boolean;
}

/** Returns the users that have a role of a tenant, assigned through the API or by a directory. */
export async function roleHolders(q: Queryable, tenant: TenantId, role: string): Promise<readonly RoleHolder[]> {
  const { rows } = await q.raw<{ rows: RoleHolder[] }>(
    `select u.id, u.email, r.source = 'manual' as manual from user_roles r join users u on u.id = r.user_id
     where u.tenant_id = :tenant and r.role_name = :role order by u.email collate "C", u.id`,
    { tenant, role },
  );
  return rows;
}
