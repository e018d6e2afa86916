/** Statements on the callers that budgets select. */

import type { BudgetId, KeyId, RoleName, TenantId, UserId } from '../../domain/ids.ts';
import type { Metadata } from '../../domain/records.ts';
import type { Queryable } from '../../store/queryable.ts';

/**
 * Returns the different sets of more than `most` budgets that select one key or one user of the tenant, without the
 * budgets of the whole tenant. Revoked keys do not count.
 */
export async function selectionsOfCallers(
  q: Queryable,
  tenant: TenantId,
  most: number,
  limit: number,
): Promise<readonly (readonly BudgetId[])[]> {
  const { rows } = await q.raw<{ rows: { budgets: readonly BudgetId[] }[] }>(
    `with budget as materialized (
       select id, applies_to from budgets where tenant_id = :tenant and enabled and not jsonb_exists(applies_to, 'tenant')
     ), of_user as materialized (
       select u.id as user_id, b.id
       from budget b cross join jsonb_array_elements_text(b.applies_to->'users') one join users u on u.id = one
       where u.tenant_id = :tenant
       union
       select u.id, b.id
       from budget b cross join jsonb_array_elements_text(b.applies_to->'roles') one
       join user_roles r on r.role_name = one join users u on u.id = r.user_id
       where u.tenant_id = :tenant
     ), of_key as (
       select k.id as key_id, b.id
       from budget b cross join jsonb_array_elements_text(b.applies_to->'keys') one join api_keys k on k.id = one
       where k.tenant_id = :tenant and k.revoked_at is null
       union all
       select k.id, b.id
       from budget b join api_keys k on k.tenant_id = :tenant and k.metadata @> (b.applies_to->'metadata')
       where k.revoked_at is null
       union all
       select k.id, o.id
       from of_user o join api_keys k on k.tenant_id = :tenant and k.user_id = o.user_id and k.revoked_at is null
     )
     select distinct budgets from (
       select array_agg(distinct id order by id) as budgets from of_user group by user_id
       union all
       select array_agg(distinct id order by id) from of_key group by key_id
     ) sets where cardinality(budgets) > :most limit :limit`,
    { tenant, most, limit },
  );
  return rows.map(({ budgets }) => budgets);
}

interface CallersOfUser {
  readonly roles: readonly RoleName[];
  /** The keys that the user owns, except revoked ones. */
  readonly keys: readonly { readonly id: KeyId; readonly metadata: Metadata }[];
}

export async function callersOfUser(q: Queryable, tenant: TenantId, user: UserId): Promise<CallersOfUser> {
  const { rows } = await q.raw<{ rows: CallersOfUser[] }>(
    `select
       array(select distinct role_name from user_roles where user_id = :user) as roles,
       coalesce((select jsonb_agg(jsonb_build_object('id', id, 'metadata', metadata)) from api_keys
         where tenant_id = :tenant and user_id = :user and revoked_at is null), '[]') as keys`,
    { tenant, user },
  );
  return rows[0] ?? { roles: [], keys: [] };
}
