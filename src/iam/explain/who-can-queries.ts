/**
 * Scans the users and keys of a tenant in the order of their ids. Each statement reads a bounded number of rows, so a
 * page costs the same for tenants of any size. Rows that are not candidates count as well.
 */

import type { PolicyName, RoleName, TenantId } from '../../domain/ids.ts';
import type { Queryable } from '../../store/queryable.ts';
import type { KeyRow } from '../api-keys/entity.ts';
import type { UserRow } from '../users/entity.ts';

export interface CandidateUser extends Pick<UserRow, 'id' | 'tenant_id' | 'email' | 'name'> {
  /** Assigned through the API or by a directory. */
  readonly roles: readonly RoleName[];
}

type ShownOfKey = 'id' | 'description' | 'scopes' | 'resource_constraints' | 'expires_at' | 'user_id';

export interface CandidateKey extends Pick<KeyRow, ShownOfKey> {
  /** The roles of the owner. */
  readonly roles: readonly RoleName[] | null;
}

export interface Scanned<T> {
  readonly candidates: readonly T[];
  /** The id of the last row, candidate or not; undefined without rows. */
  readonly lastId: string | undefined;
  /** The number of rows that were read. */
  readonly passed: number;
  /** True if there are no further rows. */
  readonly exhausted: boolean;
}

type Nullable<T, K extends keyof T> = Omit<T, K> & { readonly [Name in K]: T[Name] | null };

type ScannedUser = Nullable<CandidateUser, 'roles'>;
type ScannedKey = Nullable<CandidateKey, 'scopes'>;

const isUser = (row: ScannedUser): row is CandidateUser => row.roles !== null;
const isKey = (row: ScannedKey): row is CandidateKey => row.scopes !== null;

async function scan<Row extends { readonly id: string }, T extends Row>(
  q: Queryable,
  sql: string,
  bindings: { readonly after: string; readonly take: number } & Readonly<
    Record<string, string | number | Date | readonly string[]>
  >,
  isCandidate: (row: Row) => row is T,
): Promise<Scanned<T>> {
  const { rows } = await q.raw<{ rows: Row[] }>(sql, bindings);
  return {
    candidates: rows.filter(isCandidate),
    lastId: rows.at(-1)?.id,
    passed: rows.length,
    exhausted: rows.length < bindings.take,
  };
}

/** A subquery for each row: no plan can turn it into a scan of the whole table. */
function roleNamesSql(userId: string): string {
  return `array(select distinct r.role_name collate "C" from user_roles r where r.user_id = ${userId}
    and not exists (select from deleted_roles d where d.tenant_id = r.tenant_id and d.name = r.role_name) order by 1)`;
}

const USER = 'u.id, u.tenant_id, u.email, u.name';

/** With more roles than this, the statement scans users instead of the users of each role. */
const MAX_ROLES = 50;

/** Scans the active users of a tenant. Candidates have one of the roles. */
export function scanUsers(
  q: Queryable,
  tenant: TenantId,
  roles: 'any' | readonly RoleName[],
  after: string,
  take: number,
): Promise<Scanned<CandidateUser>> {
  if (roles === 'any') return scan(q, ACTIVE_USERS, { tenant, after, take }, isUser);
  return scan(q, roles.length > MAX_ROLES ? USERS_BY_ID : USERS_BY_ROLE, { tenant, roles, after, take }, isUser);
}

const ACTIVE_USERS = `select ${USER}, ${roleNamesSql('u.id')} as roles
  from users u where u.tenant_id = :tenant and u.status = 'active' and u.directory_suspension is null and u.id > :after
  order by u.id limit :take`;

/** The users of each role are ordered, so the first users of all roles are among the first users of each role. */
const USERS_BY_ROLE = `select ${USER}, case when u.directory_suspension is null then ${roleNamesSql('u.id')} end as roles
  from (
    select distinct held.user_id from unnest(cast(:roles as text[])) role cross join lateral (
      select user_id from user_roles
      where tenant_id = :tenant and role_name = role and status = 'active' and user_id > :after
      order by user_id limit :take
    ) held
    order by held.user_id limit :take
  ) h join users u on u.id = h.user_id
  order by u.id`;

const USERS_BY_ID = `select ${USER},
    case when (select true from user_roles r where r.user_id = u.id and r.role_name = any(cast(:roles as text[])) limit 1)
      then ${roleNamesSql('u.id')} end as roles
  from (select id, tenant_id, email, name from users
        where tenant_id = :tenant and status = 'active' and directory_suspension is null and id > :after order by id limit :take) u
  order by u.id`;

/** Scans the active users with a role. Candidates belong to other active tenants than this one. */
export function scanHoldersElsewhere(
  q: Queryable,
  role: RoleName,
  tenant: TenantId,
  after: string,
  take: number,
): Promise<Scanned<CandidateUser>> {
  return scan(
    q,
    `select ${USER}, case when u.tenant_id <> :tenant and u.directory_suspension is null and t.status = 'active' and t.deleted_at is null
         then ${roleNamesSql('u.id')} end as roles
     from (select distinct user_id from user_roles
           where role_name = :role and status = 'active' and user_id > :after order by user_id limit :take) r
       join users u on u.id = r.user_id join tenants t on t.id = u.tenant_id
     order by u.id`,
    { role, tenant, after, take },
    isUser,
  );
}

/** Scans the keys of a tenant. Candidates are active, have an active owner or none, and have one of the scopes. */
export function scanKeys(
  q: Queryable,
  tenant: TenantId,
  scopes: readonly string[],
  now: Date,
  after: string,
  take: number,
): Promise<Scanned<CandidateKey>> {
  return scan(
    q,
    `select k.id, k.description, k.resource_constraints, k.expires_at, k.user_id,
       case when k.active then ${roleNamesSql('k.user_id')} end as roles,
       case when k.active and (k.user_id is null or (
         select u.status = 'active' and u.directory_suspension is null from users u where u.id = k.user_id and u.tenant_id = k.tenant_id
       )) then k.scopes end as scopes
     from (select id, tenant_id, user_id, description, scopes, resource_constraints, expires_at,
             revoked_at is null and disabled_at is null and (expires_at is null or expires_at > :now) and scopes && cast(:scopes as text[]) as active
           from api_keys where tenant_id = :tenant and id > :after order by id limit :take) k
     order by k.id`,
    { tenant, scopes, now, after, take },
    isKey,
  );
}

/** Returns the names that a policy of the tenant or a global one has, enabled or not. */
export async function policiesNamed(
  q: Queryable,
  tenant: TenantId,
  names: readonly string[],
): Promise<ReadonlyMap<PolicyName, 'global' | 'tenant'>> {
  const { rows } = await q.raw<{ rows: { name: PolicyName; global: boolean }[] }>(
    `select name, tenant_id is null as global from policies
     where name = any(cast(:names as text[])) and (tenant_id = :tenant or tenant_id is null)`,
    { tenant, names },
  );
  return new Map(rows.map(({ name, global }) => [name, global ? 'global' : 'tenant']));
}
