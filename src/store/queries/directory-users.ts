/**
 * Users of a directory. They are found by their identity there and by nothing else: neither the name that was typed nor an e-mail address
 * makes anybody somebody.
 */

import type { RoleName, TenantId, UserId } from '../../domain/ids.ts';
import { type Prepared, runPrepared } from '../prepared.ts';
import type { Queryable } from '../queryable.ts';
import { storedRole, storedTenant, storedUser } from './rows.ts';

/** Who somebody is in a directory. */
export interface DirectoryIdentity {
  /** The name of the configured directory. */
  readonly directory: string;
  /** What the directory never changes about the person. */
  readonly stableId: string;
}

/** A user of a directory as a login needs to know it. */
export interface DirectoryUser {
  readonly id: UserId;
  readonly tenantId: TenantId;
  readonly email: string | null;
  readonly name: string;
  readonly active: boolean;
  /** False while the tenant is suspended, or deleted. */
  readonly tenantActive: boolean;
  /** Given by the directory, sorted. */
  readonly roles: readonly RoleName[];
}

interface DirectoryRow {
  readonly id: string;
  readonly tenant_id: string;
  readonly email: string | null;
  readonly name: string;
  readonly active: boolean;
  readonly tenant_active: boolean;
  readonly roles: readonly string[];
}

/** First of the two keys of a lock; the second is the hash of an identity. */
const IDENTITY_LOCK = 726_543_493;

const STATEMENTS = {
  find: {
    name: 'find_directory_user',
    text: `select u.id, u.tenant_id, u.email, u.name, u.status = 'active' as active,
        (t.status = 'active' and t.deleted_at is null) as tenant_active,
        array(select role_name from user_roles where user_id = u.id and source = 'directory' order by role_name collate "C") as roles
      from users u join tenants t on t.id = u.tenant_id
      where u.directory = $1 and u.directory_id = $2`,
  },
  hold: { name: 'hold_directory_user', text: 'select from users where directory = $1 and directory_id = $2 for update' },
  lock: { name: 'lock_directory_identity', text: `select pg_advisory_xact_lock(${IDENTITY_LOCK}, hashtext($1 || ' ' || $2))` },
  insert: {
    name: 'insert_directory_user',
    text: `insert into users (id, tenant_id, email, name, source, directory, directory_id, role_names)
      values ($1, $2, $3, $4, 'ldap', $5, $6, array(select distinct name from unnest($7::text[]) name order by name))`,
  },
  update: {
    name: 'update_directory_user',
    text: 'update users set email = $3, name = $4, updated_at = clock_timestamp() where tenant_id = $1 and id = $2',
  },
  giveRoles: {
    name: 'give_directory_roles',
    text: `with gone as (
        delete from user_roles where user_id = $1 and source = 'directory' and role_name <> all($2::text[])
      )
      insert into user_roles (user_id, role_name, source, tenant_id, status)
      select u.id, role, 'directory', u.tenant_id, u.status from users u cross join unnest($2::text[]) role where u.id = $1
      on conflict do nothing`,
  },
} as const satisfies Readonly<Record<string, Prepared>>;

export async function findDirectoryUser(
  q: Queryable,
  { directory, stableId }: DirectoryIdentity,
): Promise<DirectoryUser | undefined> {
  const [row] = await runPrepared<DirectoryRow>(q, STATEMENTS.find, [directory, stableId]);
  return (
    row && {
      id: storedUser(row.id),
      tenantId: storedTenant(row.tenant_id),
      email: row.email,
      name: row.name,
      active: row.active,
      tenantActive: row.tenant_active,
      roles: row.roles.map(storedRole),
    }
  );
}

/** The same, with the row held until the transaction ends. What is read is as the last holder left it. */
export async function holdDirectoryUser(trx: Queryable, identity: DirectoryIdentity): Promise<DirectoryUser | undefined> {
  const held = await runPrepared(trx, STATEMENTS.hold, [identity.directory, identity.stableId]);
  return held.length === 0 ? undefined : findDirectoryUser(trx, identity);
}

/** Who makes the user of an identity that has none takes this first, so that of two first logins at once one makes it. */
export async function lockDirectoryIdentity(trx: Queryable, { directory, stableId }: DirectoryIdentity): Promise<void> {
  await runPrepared(trx, STATEMENTS.lock, [directory, stableId]);
}

export interface NewDirectoryUser {
  readonly id: UserId;
  readonly tenantId: TenantId;
  readonly email: string | null;
  readonly name: string;
  readonly identity: DirectoryIdentity;
  /** Given by the directory; known to the tenant. */
  readonly roles: readonly RoleName[];
}

/** Fails with a broken `users_email_key` when the e-mail is taken. */
export async function insertDirectoryUser(trx: Queryable, user: NewDirectoryUser): Promise<void> {
  const { id, tenantId, email, name, identity, roles } = user;
  await runPrepared(trx, STATEMENTS.insert, [id, tenantId, email, name, identity.directory, identity.stableId, roles]);
  await giveDirectoryRoles(trx, id, roles);
}

/** Writes what the directory says of a user. Fails with a broken `users_email_key` when the e-mail is taken. */
export async function updateDirectoryUser(
  trx: Queryable,
  user: Pick<DirectoryUser, 'id' | 'tenantId' | 'email' | 'name'>,
): Promise<void> {
  await runPrepared(trx, STATEMENTS.update, [user.tenantId, user.id, user.email, user.name]);
}

/** Makes the roles given by the directory exactly these; those given by hand stay. The user's row must be held, the roles known. */
export async function giveDirectoryRoles(trx: Queryable, id: UserId, roles: readonly RoleName[]): Promise<void> {
  await runPrepared(trx, STATEMENTS.giveRoles, [id, roles]);
}
