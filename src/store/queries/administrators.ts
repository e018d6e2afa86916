/** The platform's administrators as the first start and the command line need them: without a caller, before anybody can log in. */

import { DEFAULT_TENANT, type TenantId, type UserId } from '../../domain/ids.ts';
import { ADMIN } from '../../domain/roles.ts';
import type { Queryable } from '../queryable.ts';
import { storedTenant, storedUser } from './rows.ts';

/** Taken while the first administrator is made, so that servers starting together make one. */
const ADMINISTRATORS_LOCK = 726_543_491;

export async function lockAdministrators(trx: Queryable): Promise<void> {
  await trx.raw('select pg_advisory_xact_lock(?)', [ADMINISTRATORS_LOCK]);
}

/** Whether an active local user holds the role `admin`. */
export async function hasLocalAdministrator(q: Queryable): Promise<boolean> {
  const result = await q.raw<{ rows: { found: boolean }[] }>(
    `select exists (select 1 from users u join user_roles r on r.user_id = u.id
       where r.role_name = ? and u.status = 'active' and u.source = 'local') as found`,
    [ADMIN],
  );
  return result.rows[0]?.found === true;
}

export async function ensureDefaultTenant(trx: Queryable): Promise<void> {
  await trx.raw(`insert into tenants (id, name) values (?, 'Default') on conflict (id) do nothing`, [DEFAULT_TENANT]);
}

export interface UserToRaise {
  readonly id: UserId;
  readonly tenantId: TenantId;
  readonly source: 'local' | 'ldap';
}

/** The user of that e-mail, whatever the tenant and status; the row is held until the transaction ends. */
export async function holdUserByEmail(trx: Queryable, email: string): Promise<UserToRaise | undefined> {
  const result = await trx.raw<{ rows: { id: string; tenant_id: string; source: 'local' | 'ldap' }[] }>(
    'select id, tenant_id, source from users where email = ? for update',
    [email],
  );
  const row = result.rows[0];
  return row && { id: storedUser(row.id), tenantId: storedTenant(row.tenant_id), source: row.source };
}

export async function insertFirstUser(trx: Queryable, user: { readonly id: UserId; readonly email: string }): Promise<void> {
  await trx.raw(`insert into users (id, tenant_id, email, name) values (?, ?, ?, 'Administrator')`, [
    user.id,
    DEFAULT_TENANT,
    user.email,
  ]);
}

/** Makes a user active, with that password and the role `admin`. */
export async function raiseToAdministrator(trx: Queryable, id: UserId, passwordHash: string): Promise<void> {
  await trx.raw(
    `update users set status = 'active', password_hash = ?, password_changed_at = clock_timestamp(), updated_at = clock_timestamp()
     where id = ?`,
    [passwordHash, id],
  );
  await trx.raw('insert into user_roles (user_id, role_name) values (?, ?) on conflict do nothing', [id, ADMIN]);
}
