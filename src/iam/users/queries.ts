/**
 * Reads and writes users and the roles given to them. Every lookup names the tenant, so a user of another tenant does
 * not exist for it.
 */

import type { RoleName, TenantId, UserId } from '../../domain/ids.ts';
import { type TenantScope, within } from '../../store/paging.ts';
import { runPrepared } from '../../store/prepared.ts';
import { jsonb, type Queryable } from '../../store/queryable.ts';
import type { DatabaseTime } from '../../store/time.ts';
import { LOCKED_UNTIL } from '../auth/failure-queries.ts';
import type { UserRow, UserTable } from './entity.ts';
import { putPasswordSetup, type TokenMaker } from './password-queries.ts';

/** SQL: the role `r` of the user `u` is not a deleted one whose rows are still there. */
const NOT_DELETED = 'not exists (select from deleted_roles d where d.tenant_id = u.tenant_id and d.name = r.role_name)';

/** Only users with an identity have roles of issuers. */
const IS_LINKED = 'exists (select from user_identities l where l.user_id = u.id)';

/** A local user has no roles of a directory, so without roles of issuers all that the row names were given by hand. */
const COLUMNS = `u.id, u.tenant_id, u.email, u.name, u.department, u.metadata, u.rate_limits, u.status, u.source, u.created_at, u.updated_at, u.email_conflict,
    case when u.source = 'ldap' then coalesce(u.directory_suspension, 'active') end as directory_status,
    case when u.source = 'local' and not ${IS_LINKED} then array(
        select r.role_name from unnest(u.role_names) r (role_name) where ${NOT_DELETED} order by r.role_name collate "C")
      else ${rolesBy("= 'manual'")} end as roles,
    case when u.source = 'ldap' then ${rolesBy("= 'directory'")} else '{}' end as directory_roles,
    case when ${IS_LINKED} then ${rolesBy("like 'issuer:%'")} else '{}' end as issuer_roles,
    coalesce((select json_agg(json_build_object('issuer', i.name, 'subject', l.subject) order by i.name collate "C", l.subject collate "C")
      from user_identities l join issuers i on i.id = l.issuer_id where l.user_id = u.id), '[]') as identities,
    (select last_login_at from user_logins where user_id = u.id) as last_login_at,
    (${LOCKED_UNTIL}) as locked_until`;

/** @param source a condition on the source */
function rolesBy(source: string): string {
  return `array(select distinct r.role_name collate "C" from user_roles r where r.user_id = u.id and r.source ${source} and ${NOT_DELETED}
      order by 1)`;
}

/** Users as UserRow; what follows narrows `u`. */
export const USER = `select ${COLUMNS} from users u`;

const users = (q: Queryable) => q<UserTable>('users');

const FIND_USER = { name: 'find_user', text: `${USER} where u.tenant_id = $1 and u.id = $2` };

export async function findUser(q: Queryable, tenant: TenantId, id: UserId): Promise<UserRow | undefined> {
  const [row] = await runPrepared<UserRow>(q, FIND_USER, [tenant, id]);
  return row;
}

/**
 * Locks the user's row until the transaction ends: `update` against every other lock, `share` against changes and
 * deletion.
 * @returns false if there is no such user
 */
export async function lockUser(q: Queryable, tenant: TenantId, id: UserId, mode: 'update' | 'share'): Promise<boolean> {
  const row = users(q).where({ tenant_id: tenant, id }).first('id');
  return (await (mode === 'update' ? row.forUpdate() : row.forShare())) !== undefined;
}

/**
 * Locks the user's row for an update, unless the role was given to the user by hand.
 * @returns false if it locked no row
 */
export async function lockUserUnlessHolder(
  q: Queryable,
  tenant: TenantId,
  id: UserId,
  role: RoleName,
): Promise<boolean> {
  const holds = q('user_roles').where({ user_id: id, role_name: role, source: 'manual' });
  const row = await users(q).where({ tenant_id: tenant, id }).whereNotExists(holds).forUpdate('users').first('id');
  return row !== undefined;
}

/** Locks these users until the transaction ends, in one order, against changes of their rows, roles and status. */
export async function lockUsers(q: Queryable, ids: readonly UserId[]): Promise<void> {
  await users(q).whereIn('id', ids).orderBy('id').forNoKeyUpdate().select('id');
}

/** A local, active user to insert. */
interface AddedUser extends Pick<UserRow, 'id' | 'tenant_id' | 'email' | 'name' | 'department'> {
  /** Default: none. */
  readonly metadata?: UserRow['metadata'];
  readonly rate_limits?: UserRow['rate_limits'];
  readonly password_hash: string | null;
  /** Given by hand. They exist in the tenant. Default: none. */
  readonly roles?: readonly RoleName[];
  /** A one-time token, valid for one hour. */
  readonly passwordSetup?: { readonly digest: Uint8Array; readonly maker: TokenMaker } | undefined;
}

/** Fails with a broken `users_email_key` if another user has the email address. @param at default: now */
export async function insertUser(q: Queryable, added: AddedUser, at?: DatabaseTime): Promise<void> {
  const { roles = [], passwordSetup, rate_limits: rates = null, ...columns } = added;
  const time = at === undefined ? q.raw('clock_timestamp()') : q.raw('cast(? as timestamptz)', [at.text]);
  await users(q).insert({
    ...columns,
    rate_limits: jsonb(q, rates),
    password_changed_at: columns.password_hash === null ? null : time,
    // The roles that are inserted next. Their trigger then has nothing to change here.
    role_names: q.raw('array(select distinct name from unnest(cast(:roles as text[])) name order by name)', { roles }),
    created_at: time,
    updated_at: time,
  });
  if (roles.length > 0) await giveRoles(q, [added.id], roles);
  if (passwordSetup !== undefined) await putPasswordSetup(q, added.id, passwordSetup.digest, passwordSetup.maker);
}

async function giveRoles(q: Queryable, ids: readonly UserId[], roles: readonly RoleName[]): Promise<void> {
  const rows = ids.flatMap((id) => roles.map((role) => ({ user_id: id, role_name: role, source: 'manual' })));
  await q('user_roles').insert(rows).onConflict().ignore();
}

/** Writes these columns of a user. Fails with a broken `users_email_key` if another user has the email address. */
export async function updateUserRow(
  q: Queryable,
  {
    id,
    tenant_id,
    rate_limits: rates,
    ...columns
  }: Pick<UserRow, 'id' | 'tenant_id' | 'email' | 'name' | 'department' | 'metadata' | 'rate_limits'>,
): Promise<void> {
  await users(q)
    .where({ tenant_id, id })
    .update({
      ...columns,
      rate_limits: jsonb(q, rates),
      updated_at: q.raw('clock_timestamp()'),
    });
}

export async function setUserStatus(
  q: Queryable,
  tenant: TenantId,
  ids: readonly UserId[],
  status: UserRow['status'],
): Promise<void> {
  await users(q)
    .where({ tenant_id: tenant })
    .whereIn('id', ids)
    .update({ status, updated_at: q.raw('clock_timestamp()') });
}

/** Replaces the roles given by hand. Those of a directory and of issuers stay. The caller has checked the user's tenant. */
export async function setManualRoles(q: Queryable, id: UserId, roles: readonly RoleName[]): Promise<void> {
  await q('user_roles').where({ user_id: id, source: 'manual' }).whereNotIn('role_name', roles).delete();
  if (roles.length > 0) await giveRoles(q, [id], roles);
}

/** Gives users a role by hand. The caller has checked their tenant. */
export async function giveRole(q: Queryable, ids: readonly UserId[], role: RoleName): Promise<void> {
  await giveRoles(q, ids, [role]);
  await touch(q, ids);
}

/** Takes a role that was given by hand from users. The caller has checked their tenant. */
export async function takeRole(q: Queryable, ids: readonly UserId[], role: RoleName): Promise<void> {
  await q('user_roles').whereIn('user_id', ids).where({ role_name: role, source: 'manual' }).delete();
  await touch(q, ids);
}

/** Sets the time of the last update, as every change of a user does. */
async function touch(q: Queryable, ids: readonly UserId[]): Promise<void> {
  await users(q)
    .whereIn('id', ids)
    .update({ updated_at: q.raw('clock_timestamp()') });
}

/** Deletes the user's one-time tokens and roles as well. Keys and sessions stay, and must have been ended. */
export async function deleteUserRow(q: Queryable, tenant: TenantId, id: UserId): Promise<void> {
  await users(q).where({ tenant_id: tenant, id }).delete();
}

/**
 * Call it with the tenant's row locked for an update, or after `lockPlaces`, so that no user is added before the
 * transaction ends.
 */
export async function countActiveUsers(q: Queryable, tenant: TenantId): Promise<number> {
  const [row] = await users(q)
    .where({ tenant_id: tenant, status: 'active' })
    .count<{ active: string }[]>('* as active');
  return Number(row?.active ?? 0);
}

/** Reports whether any user of a tenant holds a role, by hand, from the directory or from an issuer. */
export async function isRoleGiven(q: Queryable, tenant: TenantId, role: RoleName): Promise<boolean> {
  return (await q('user_roles').where({ tenant_id: tenant, role_name: role }).first('user_id')) !== undefined;
}

/** Returns the tenant of a user within the scope; undefined if there is no such user in it. */
export async function tenantOfUser(q: Queryable, scope: TenantScope, id: UserId): Promise<TenantId | undefined> {
  return (await users(q).where({ id }).modify(within(scope)).first('tenant_id'))?.tenant_id;
}

/** Returns the user with this email address, in lower case, within the scope. */
export async function userIdOfEmail(q: Queryable, scope: TenantScope, email: string): Promise<UserId | undefined> {
  return (await users(q).where({ email }).modify(within(scope)).first('id'))?.id;
}

/** Returns the email addresses of the tenant's users that have one of the ids. */
export async function emailsOfUsers(
  q: Queryable,
  tenant: TenantId,
  ids: readonly UserId[],
): Promise<ReadonlyMap<UserId, string>> {
  if (ids.length === 0) return new Map();
  const { rows } = await q.raw<{ rows: { id: UserId; email: string }[] }>(
    'select id, email from users where tenant_id = :tenant and id = any(cast(:ids as text[])) and email is not null',
    { tenant, ids: [...ids] },
  );
  return new Map(rows.map(({ id, email }) => [id, email]));
}

/** Returns the ids of the tenant's users that have one of the email addresses. */
export async function usersOfEmails(
  q: Queryable,
  tenant: TenantId,
  emails: readonly string[],
): Promise<ReadonlyMap<string, UserId>> {
  const { rows } = await q.raw<{ rows: { id: UserId; email: string }[] }>(
    'select id, email from users where tenant_id = :tenant and email = any(cast(:emails as text[]))',
    { tenant, emails: [...emails] },
  );
  return new Map(rows.map(({ id, email }) => [email, id]));
}
