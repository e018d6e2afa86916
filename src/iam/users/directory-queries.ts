/**
 * Users of a directory. Only the identity in the directory finds them, never the typed username or an email address.
 */

import type { RoleName, TenantId, UserId } from '../../domain/ids.ts';
import type { DirectorySuspension } from '../../domain/records.ts';
import { type Prepared, runPrepared } from '../../store/prepared.ts';
import type { Queryable } from '../../store/queryable.ts';

export interface DirectoryIdentity {
  /** The name of the configured directory. */
  readonly directory: string;
  /** The attribute that the directory never changes. */
  readonly stableId: string;
}

/** A user of a directory, for a login. */
export interface DirectoryUser {
  readonly id: UserId;
  readonly tenantId: TenantId;
  readonly email: string | null;
  /** The address from the directory if another user has it. */
  readonly emailConflict: string | null;
  readonly name: string;
  readonly active: boolean;
  /** The reason why the directory suspends the user; null = it does not. */
  readonly suspension: DirectorySuspension | null;
  /** The time since the last answer of the directory about the user. Null: none. */
  readonly checkedAgoMs: number | null;
  /** False while the tenant is suspended or deleted. */
  readonly tenantActive: boolean;
  /** Given by the directory, each once, sorted. */
  readonly roles: readonly RoleName[];
}

/** First of the two keys of a lock; the second is the hash of an identity. */
const IDENTITY_LOCK = 726_543_493;

const STATEMENTS = {
  find: {
    name: 'find_directory_user',
    text: `select u.id, u.tenant_id as "tenantId", u.email, u.email_conflict as "emailConflict", u.name,
        u.status = 'active' as active, u.directory_suspension as suspension,
        extract(epoch from clock_timestamp() - u.directory_checked_at)::float8 * 1000 as "checkedAgoMs",
        (t.status = 'active' and t.deleted_at is null) as "tenantActive",
        array(select role_name from user_roles where user_id = u.id and source = 'directory' order by role_name collate "C") as roles
      from users u join tenants t on t.id = u.tenant_id
      where u.directory = $1 and u.directory_id = $2`,
  },
  hold: {
    name: 'hold_directory_user',
    text: 'select from users where directory = $1 and directory_id = $2 for update',
  },
  lock: {
    name: 'lock_directory_identity',
    text: `select pg_advisory_xact_lock(${IDENTITY_LOCK}, hashtext($1 || ' ' || $2))`,
  },
  insert: {
    name: 'insert_directory_user',
    text: `insert into users (id, tenant_id, name, source, directory, directory_id, directory_checked_at, role_names)
      values ($1, $2, $3, 'ldap', $4, $5, clock_timestamp(), array(select distinct name from unnest($6::text[]) name order by name))`,
  },
  update: {
    name: 'update_directory_user',
    text: `update users set name = $2, directory_suspension = null, directory_suspended_at = null,
        directory_checked_at = clock_timestamp(), updated_at = clock_timestamp() where id = $1`,
  },
  giveEmail: { name: 'give_directory_email', text: 'select give_directory_email($1, $2)' },
  isTaken: { name: 'is_email_taken', text: 'select exists (select from users where email = $1) as taken' },
  checked: {
    name: 'note_directory_check',
    text: 'update users set directory_checked_at = clock_timestamp() where id = $1',
  },
  suspend: {
    name: 'suspend_directory_user',
    text: `update users set directory_suspension = $2, directory_suspended_at = coalesce(directory_suspended_at, clock_timestamp()),
        directory_checked_at = clock_timestamp(), updated_at = clock_timestamp() where id = $1`,
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
  const [user] = await runPrepared<DirectoryUser>(q, STATEMENTS.find, [directory, stableId]);
  return user;
}

/**
 * Like `findDirectoryUser`, and locks the row until the transaction ends. The read follows the lock, so it is current.
 */
export async function holdDirectoryUser(
  trx: Queryable,
  identity: DirectoryIdentity,
): Promise<DirectoryUser | undefined> {
  const held = await runPrepared(trx, STATEMENTS.hold, [identity.directory, identity.stableId]);
  return held.length === 0 ? undefined : findDirectoryUser(trx, identity);
}

/**
 * Locks an identity. A login takes this lock before it creates the user, so that of two concurrent first logins one
 * creates it.
 */
export async function lockDirectoryIdentity(trx: Queryable, { directory, stableId }: DirectoryIdentity): Promise<void> {
  await runPrepared(trx, STATEMENTS.lock, [directory, stableId]);
}

/** A user to insert. The roles are known to the tenant, in any order. */
export interface NewDirectoryUser extends Pick<DirectoryUser, 'id' | 'tenantId' | 'email' | 'name' | 'roles'> {
  readonly identity: DirectoryIdentity;
}

/**
 * Inserts a user. If another user has the email address, the new user has none, and the address is stored as its
 * conflict.
 */
export async function insertDirectoryUser(trx: Queryable, user: NewDirectoryUser): Promise<void> {
  const { id, tenantId, email, name, identity, roles } = user;
  await runPrepared(trx, STATEMENTS.insert, [id, tenantId, name, identity.directory, identity.stableId, roles]);
  if (email !== null) await giveEmail(trx, id, email);
  await giveDirectoryRoles(trx, id, roles);
}

/**
 * Writes the directory's statements about a user, and ends a suspension. If another user has the email address, the
 * user has none, and the address is stored as its conflict.
 */
export async function updateDirectoryUser(
  trx: Queryable,
  user: Pick<DirectoryUser, 'id' | 'email' | 'name'>,
): Promise<void> {
  await runPrepared(trx, STATEMENTS.update, [user.id, user.name]);
  await giveEmail(trx, user.id, user.email);
}

/** @param email null = the directory shows none */
async function giveEmail(trx: Queryable, id: UserId, email: string | null): Promise<void> {
  await runPrepared(trx, STATEMENTS.giveEmail, [id, email]);
}

/** Returns the identity of a user in its directory; undefined for other users. */
export async function directoryIdentityOf(q: Queryable, id: UserId): Promise<DirectoryIdentity | undefined> {
  const { rows } = await q.raw<{ rows: DirectoryIdentity[] }>(
    'select directory, directory_id as "stableId" from users where id = :id and directory is not null',
    { id },
  );
  return rows[0];
}

/** Reports whether any user has the address. */
export async function isEmailTaken(q: Queryable, email: string): Promise<boolean> {
  const [row] = await runPrepared<{ taken: boolean }>(q, STATEMENTS.isTaken, [email]);
  return row?.taken === true;
}

/** Records that the directory has confirmed the user now, without changes. */
export async function noteDirectoryCheck(trx: Queryable, id: UserId): Promise<void> {
  await runPrepared(trx, STATEMENTS.checked, [id]);
}

/**
 * Suspends a user. After the commit, every replica rejects its keys and access tokens. The caller has locked the user's
 * row.
 */
export async function suspendDirectoryUser(trx: Queryable, id: UserId, suspension: DirectorySuspension): Promise<void> {
  await runPrepared(trx, STATEMENTS.suspend, [id, suspension]);
}

/**
 * Replaces the roles from the directory. Roles given by hand stay. The caller has locked the user's row and checked the
 * roles.
 */
export async function giveDirectoryRoles(trx: Queryable, id: UserId, roles: readonly RoleName[]): Promise<void> {
  await runPrepared(trx, STATEMENTS.giveRoles, [id, roles]);
}
