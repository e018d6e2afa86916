/**
 * The people and keys of a tenant, for asking each what they may do. Every look-up passes over so many rows and no more, in the order of
 * their ids, so that a tenant of any size costs a page the same. Rows that it passes over may be no candidates.
 */

import type { KeyId, PolicyName, RoleName, TenantId, UserId } from '../../domain/ids.ts';
import type { ResourceConstraints } from '../../domain/records.ts';
import { storedKey, storedPolicy, storedRole, storedTenant, storedUser } from '../../store/paging.ts';
import type { Queryable } from '../../store/queryable.ts';

export interface CandidateUser {
  readonly id: UserId;
  readonly tenantId: TenantId;
  readonly email: string | null;
  readonly name: string;
  /** By hand and by the directory together. */
  readonly roles: readonly RoleName[];
}

export interface CandidateKey {
  readonly id: KeyId;
  readonly description: string;
  readonly scopes: readonly string[];
  readonly constraints: ResourceConstraints;
  readonly expiresAt: Date | null;
  /** Undefined = the tenant's own. */
  readonly owner: { readonly id: UserId; readonly roles: readonly RoleName[] } | undefined;
}

/** Rows that were passed over: the last one's id, and those among them that may be the answer. */
export interface Scanned<T> {
  readonly candidates: readonly T[];
  /** Undefined: there was none. */
  readonly lastId: string | undefined;
  /** How many rows. */
  readonly passed: number;
  /** There is nothing after them. */
  readonly exhausted: boolean;
}

function scanned<Row extends { readonly id: string }, T>(
  rows: readonly Row[],
  take: number,
  read: (row: Row) => T | undefined,
): Scanned<T> {
  return {
    candidates: rows.flatMap((row) => read(row) ?? []),
    lastId: rows.at(-1)?.id,
    passed: rows.length,
    exhausted: rows.length < take,
  };
}

interface UserRow {
  readonly id: string;
  readonly tenant_id: string;
  readonly email: string | null;
  readonly name: string;
  /** null: no candidate. */
  readonly roles: readonly string[] | null;
}

function toUser({ id, tenant_id, email, name, roles }: UserRow): CandidateUser | undefined {
  if (roles === null) return undefined;
  return { id: storedUser(id), tenantId: storedTenant(tenant_id), email, name, roles: roles.map(storedRole) };
}

/** One look-up for each row, which no plan turns into reading the table. */
function roleNamesSql(userId: string): string {
  return `array(select distinct role_name collate "C" from user_roles where user_id = ${userId} order by 1)`;
}

/** From so many roles on, people are passed over one by one rather than looked up by each role. */
const MAX_ROLES = 50;

/** Candidates are the active users of a tenant who hold one of the roles; `any`: all active users. */
export function scanUsers(
  q: Queryable,
  tenant: TenantId,
  roles: 'any' | readonly RoleName[],
  after: string,
  take: number,
): Promise<Scanned<CandidateUser>> {
  if (roles === 'any') return scanActiveUsers(q, tenant, after, take);
  return roles.length > MAX_ROLES
    ? scanByUser(q, tenant, roles, after, take)
    : scanByRole(q, tenant, roles, after, take);
}

async function scanActiveUsers(
  q: Queryable,
  tenant: TenantId,
  after: string,
  take: number,
): Promise<Scanned<CandidateUser>> {
  const { rows } = await q.raw<{ rows: UserRow[] }>(
    `select u.id, u.tenant_id, u.email, u.name, ${roleNamesSql('u.id')} as roles
     from users u where u.tenant_id = :tenant and u.status = 'active' and u.directory_suspension is null and u.id > :after order by u.id limit :take`,
    { tenant, after, take },
  );
  return scanned(rows, take, toUser);
}

/** Each role's holders are in order, so the first of all are among the first of each. */
async function scanByRole(
  q: Queryable,
  tenant: TenantId,
  roles: readonly RoleName[],
  after: string,
  take: number,
): Promise<Scanned<CandidateUser>> {
  const { rows } = await q.raw<{ rows: UserRow[] }>(
    `select u.id, u.tenant_id, u.email, u.name, case when u.directory_suspension is null then ${roleNamesSql('u.id')} end as roles
     from (
       select distinct held.user_id from unnest(cast(:roles as text[])) role cross join lateral (
         select user_id from user_roles
         where tenant_id = :tenant and role_name = role and status = 'active' and user_id > :after
         order by user_id limit :take
       ) held
       order by held.user_id limit :take
     ) h join users u on u.id = h.user_id
     order by u.id`,
    { tenant, roles, after, take },
  );
  return scanned(rows, take, toUser);
}

async function scanByUser(
  q: Queryable,
  tenant: TenantId,
  roles: readonly RoleName[],
  after: string,
  take: number,
): Promise<Scanned<CandidateUser>> {
  const { rows } = await q.raw<{ rows: UserRow[] }>(
    `select u.id, u.tenant_id, u.email, u.name,
       case when (select true from user_roles r where r.user_id = u.id and r.role_name = any(cast(:roles as text[])) limit 1)
         then ${roleNamesSql('u.id')} end as roles
     from (select id, tenant_id, email, name from users
           where tenant_id = :tenant and status = 'active' and directory_suspension is null and id > :after order by id limit :take) u
     order by u.id`,
    { tenant, roles, after, take },
  );
  return scanned(rows, take, toUser);
}

/** Active holders of a role who belong to other tenants than this one, active ones too. */
export async function scanHoldersElsewhere(
  q: Queryable,
  role: RoleName,
  tenant: TenantId,
  after: string,
  take: number,
): Promise<Scanned<CandidateUser>> {
  const { rows } = await q.raw<{ rows: UserRow[] }>(
    `select u.id, u.tenant_id, u.email, u.name,
       case when u.tenant_id <> :tenant and u.directory_suspension is null and t.status = 'active' and t.deleted_at is null then ${roleNamesSql('u.id')} end as roles
     from (select distinct user_id from user_roles
           where role_name = :role and status = 'active' and user_id > :after order by user_id limit :take) r
       join users u on u.id = r.user_id join tenants t on t.id = u.tenant_id
     order by u.id`,
    { role, tenant, after, take },
  );
  return scanned(rows, take, toUser);
}

interface KeyRow {
  readonly id: string;
  readonly description: string;
  /** null: no candidate. */
  readonly scopes: readonly string[] | null;
  readonly resource_constraints: ResourceConstraints;
  readonly expires_at: Date | null;
  readonly user_id: string | null;
  readonly roles: readonly string[] | null;
}

function toKey(row: KeyRow): CandidateKey | undefined {
  if (row.scopes === null) return undefined;
  return {
    id: storedKey(row.id),
    description: row.description,
    scopes: row.scopes,
    constraints: row.resource_constraints,
    expiresAt: row.expires_at,
    owner: row.user_id === null ? undefined : { id: storedUser(row.user_id), roles: (row.roles ?? []).map(storedRole) },
  };
}

/** Candidates are the keys that stand, of an owner who is active, with one of these scopes. */
export async function scanKeys(
  q: Queryable,
  tenant: TenantId,
  scopes: readonly string[],
  now: Date,
  after: string,
  take: number,
): Promise<Scanned<CandidateKey>> {
  const { rows } = await q.raw<{ rows: KeyRow[] }>(
    `select k.id, k.description, k.resource_constraints, k.expires_at, k.user_id, case when k.stands then ${roleNamesSql('k.user_id')} end as roles,
       case when k.stands and (k.user_id is null or (
         select u.status = 'active' and u.directory_suspension is null from users u where u.id = k.user_id and u.tenant_id = k.tenant_id
       )) then k.scopes end as scopes
     from (select id, tenant_id, user_id, description, scopes, resource_constraints, expires_at,
             revoked_at is null and (expires_at is null or expires_at > :now) and scopes && cast(:scopes as text[]) as stands
           from api_keys where tenant_id = :tenant and id > :after order by id limit :take) k
     order by k.id`,
    { tenant, scopes, now, after, take },
  );
  return scanned(rows, take, toKey);
}

/** Of these names those that policies in force in a tenant have, disabled ones too, and whether each is a global one's. */
export async function policiesNamed(
  q: Queryable,
  tenant: TenantId,
  names: readonly string[],
): Promise<ReadonlyMap<PolicyName, 'global' | 'tenant'>> {
  const { rows } = await q.raw<{ rows: { name: string; global: boolean }[] }>(
    `select name, tenant_id is null as global from policies
     where name = any(cast(:names as text[])) and (tenant_id = :tenant or tenant_id is null)`,
    { tenant, names },
  );
  return new Map(rows.map(({ name, global }) => [storedPolicy(name), global ? 'global' : 'tenant']));
}
