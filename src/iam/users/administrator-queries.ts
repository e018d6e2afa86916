/** Reads and writes the platform's administrators for the first start and the command line, which have no caller. */

import { DEFAULT_TENANT, type TenantId, type UserId } from '../../domain/ids.ts';
import { ADMIN } from '../../domain/roles.ts';
import type { Queryable } from '../../store/queryable.ts';
import type { UserSource } from './entity.ts';

/** The number of an advisory lock. No other lock in the database has it. */
export const ADMINISTRATORS_LOCK = 726_543_491;

/**
 * Locks the set of administrators until the transaction ends. A transaction that may leave fewer administrators (it
 * changes a holder of `admin`, or suspends a tenant) takes this lock before it locks their rows, and reads the
 * remaining administrators after it.
 */
export async function lockAdministrators(trx: Queryable): Promise<void> {
  await trx.raw('select pg_advisory_xact_lock(?)', [ADMINISTRATORS_LOCK]);
}

/** An active local user to whom the role `admin` was given by hand. */
export interface Administrator {
  readonly id: UserId;
  readonly email: string | null;
  readonly tenantId: TenantId;
  /** False while the tenant is suspended, so that the administrator cannot log in. */
  readonly tenantActive: boolean;
  /** False until a first password is set; before that, the administrator cannot log in. */
  readonly hasPassword: boolean;
}

const ADMINISTRATORS = `from users u join user_roles r on r.user_id = u.id join tenants t on t.id = u.tenant_id
  where r.role_name = '${ADMIN}' and r.source = 'manual' and u.source = 'local' and u.status = 'active'`;

/** The administrators of all tenants. */
export async function localAdministrators(q: Queryable): Promise<readonly Administrator[]> {
  const { rows } = await q.raw<{ rows: Administrator[] }>(
    `select u.id, u.email, u.tenant_id as "tenantId", t.status = 'active' and t.deleted_at is null as "tenantActive",
       u.password_hash is not null as "hasPassword"
     ${ADMINISTRATORS}`,
  );
  return rows;
}

/** Reports whether any tenant has an administrator. */
export async function hasLocalAdministrator(q: Queryable): Promise<boolean> {
  const { rows } = await q.raw<{ rows: { found: boolean }[] }>(`select exists (select ${ADMINISTRATORS}) as found`);
  return rows[0]?.found === true;
}

/** Reports whether the user of the address was given the role `admin` by hand. The user may be unable to log in. */
export async function holdsAdminRole(q: Queryable, email: string): Promise<boolean> {
  const { rows } = await q.raw<{ rows: { found: boolean }[] }>(
    `select exists (select from users u join user_roles r on r.user_id = u.id
       where u.email = :email and r.role_name = :role and r.source = 'manual') as found`,
    { email, role: ADMIN },
  );
  return rows[0]?.found === true;
}

export async function usersWithPassword(q: Queryable, ids: readonly UserId[]): Promise<ReadonlySet<UserId>> {
  const { rows } = await q.raw<{ rows: { id: UserId }[] }>(
    'select id from users where id = any(cast(:ids as text[])) and password_hash is not null',
    { ids },
  );
  return new Set(rows.map(({ id }) => id));
}

export async function ensureDefaultTenant(trx: Queryable): Promise<void> {
  await trx.raw(`insert into tenants (id, name) values (?, 'Default') on conflict (id) do nothing`, [DEFAULT_TENANT]);
}

export interface UserToRaise {
  readonly id: UserId;
  readonly tenantId: TenantId;
  readonly tenantActive: boolean;
  readonly source: UserSource;
  readonly status: 'active' | 'deactivated';
}

/** Returns the user of an email address, in any tenant, and locks its row until the transaction ends. */
export async function holdUserByEmail(trx: Queryable, email: string): Promise<UserToRaise | undefined> {
  const { rows } = await trx.raw<{ rows: UserToRaise[] }>(
    `select u.id, u.tenant_id as "tenantId", u.source, u.status, t.status = 'active' and t.deleted_at is null as "tenantActive"
     from users u join tenants t on t.id = u.tenant_id where u.email = ? for update of u`,
    [email],
  );
  return rows[0];
}

export async function insertFirstUser(
  trx: Queryable,
  user: { readonly id: UserId; readonly email: string },
): Promise<void> {
  await trx.raw(`insert into users (id, tenant_id, email, name) values (?, ?, ?, 'Administrator')`, [
    user.id,
    DEFAULT_TENANT,
    user.email,
  ]);
}

/** Gives a user that password and the role `admin`. */
export async function raiseToAdministrator(trx: Queryable, id: UserId, passwordHash: string): Promise<void> {
  await trx.raw(
    `update users set password_hash = ?, password_changed_at = clock_timestamp(), updated_at = clock_timestamp()
     where id = ?`,
    [passwordHash, id],
  );
  await trx.raw('insert into user_roles (user_id, role_name) values (?, ?) on conflict do nothing', [id, ADMIN]);
}
