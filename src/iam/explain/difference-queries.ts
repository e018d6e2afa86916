/**
 * Reads a tenant's principals in groups that every rule treats alike, and their metered requests. Each statement reads a
 * bounded number of rows.
 */

import type { KeyId, RoleName, TenantId, UserId } from '../../domain/ids.ts';
import type { ResourceConstraints } from '../../domain/records.ts';
import type { Queryable } from '../../store/queryable.ts';

/** The largest number of users, and of keys, of a tenant that one difference reads, and of groups of them. */
export const MAX_PRINCIPALS = 100_000;
export const MAX_GROUPS = 5_000;
/** The largest number of sums of requests of one key or user and one model. */
const MAX_METERED = 200_000;
export const USAGE_DAYS = 7;

/** The members that rules read, of active users and valid keys. */
export type GroupRow = { readonly roles: readonly RoleName[] } & (
  | { readonly kind: 'user'; readonly id: UserId }
  | {
      readonly kind: 'api_key';
      readonly id: KeyId;
      readonly scopes: readonly string[];
      readonly resource_constraints: ResourceConstraints;
      readonly owner: UserId | null;
    }
);

type CountedGroup = GroupRow & {
  readonly count: number;
  /** The time at which the named principal expires. Null: never. */
  readonly expires_at: Date | null;
};

/** @param ids the condition on `u.id` or `k.id` */
function principals(ids: (id: string) => string): string {
  return `held as materialized (
      select user_id, array_agg(distinct role_name collate "C" order by role_name collate "C") as roles
      from user_roles where tenant_id = :tenant group by user_id
    ), principals as materialized (
      (select 'user' as kind, u.id, null::text[] as scopes, null::jsonb as resource_constraints, null::text as owner,
         coalesce(h.roles, '{}') as roles, null::timestamptz as expires_at
       from users u left join held h on h.user_id = u.id
       where u.tenant_id = :tenant and u.status = 'active' and u.directory_suspension is null and ${ids('u.id')}
       limit :most)
      union all
      (select 'api_key', k.id, k.scopes, k.resource_constraints, k.user_id, coalesce(h.roles, '{}'), k.expires_at
       from api_keys k left join users u on u.id = k.user_id and u.tenant_id = k.tenant_id left join held h on h.user_id = k.user_id
       where k.tenant_id = :tenant and k.revoked_at is null and k.disabled_at is null and (k.expires_at is null or k.expires_at > :now)
         and (k.user_id is null or (u.status = 'active' and u.directory_suspension is null)) and ${ids('k.id')}
       limit :most)
    )`;
}

const ALL = principals(() => 'true');
const NAMED = principals((id) => `${id} = any(:ids)`);
const GROUP = 'kind, scopes, resource_constraints, owner is null, roles';

interface TenantGroups {
  readonly groups: readonly CountedGroup[];
  /** True if the tenant has more principals or groups than are read. */
  readonly truncated: boolean;
}

/** Returns the largest groups, each by the principal that expires last. */
export async function principalGroups(q: Queryable, tenant: TenantId, now: Date): Promise<TenantGroups> {
  const { rows } = await q.raw<{ rows: readonly CountedGroup[] }>(
    `with ${ALL}
     select kind, (array_agg(id order by expires_at desc nulls first, id collate "C"))[1] as id, scopes, resource_constraints,
       min(owner) as owner, roles, count(*)::int as count, (array_agg(expires_at order by expires_at desc nulls first))[1] as expires_at
     from principals group by ${GROUP} order by count(*) desc, 2 limit :take`,
    { tenant, now, most: MAX_PRINCIPALS, take: MAX_GROUPS + 1 },
  );
  const groups = rows.slice(0, MAX_GROUPS);
  const countOf = (kind: GroupRow['kind']): number =>
    groups.reduce((sum, group) => (group.kind === kind ? sum + group.count : sum), 0);
  const truncated =
    rows.length > MAX_GROUPS || countOf('user') >= MAX_PRINCIPALS || countOf('api_key') >= MAX_PRINCIPALS;
  return { groups, truncated };
}

export type MeteredGroup = GroupRow & { readonly model: string; readonly requests: number };

/**
 * Returns the requests since a day, by group and model.
 * @param since `2026-11-30`
 * @returns undefined if there are more sums than are read
 */
export async function meteredRequests(
  q: Queryable,
  tenant: TenantId,
  now: Date,
  since: string,
): Promise<readonly MeteredGroup[] | undefined> {
  const { rows } = await q.raw<{ rows: readonly (MeteredGroup & { readonly metered: number })[] }>(
    `with ${ALL}, metered as materialized (
       select case when key_id <> '' then key_id else user_id end as principal, model, sum(requests) as requests
       from usage_daily where tenant_id = :tenant and day >= cast(:since as date) group by 1, 2 limit :take
     )
     select kind, scopes, resource_constraints, min(owner) as owner, roles, model, sum(requests)::float8 as requests,
       (select count(*)::int from metered) as metered
     from metered join principals on principals.id = metered.principal group by ${GROUP}, model`,
    { tenant, now, since, most: MAX_PRINCIPALS, take: MAX_METERED + 1 },
  );
  return (rows[0]?.metered ?? 0) > MAX_METERED ? undefined : rows;
}

/** Returns the users and keys among these ids that are active and belong to the tenant. */
export async function principalsOf(
  q: Queryable,
  tenant: TenantId,
  now: Date,
  ids: readonly string[],
): Promise<readonly GroupRow[]> {
  const { rows } = await q.raw<{ rows: readonly GroupRow[] }>(`with ${NAMED} select * from principals`, {
    tenant,
    now,
    ids,
    most: ids.length,
  });
  return rows;
}
