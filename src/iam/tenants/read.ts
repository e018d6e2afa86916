/** Reads tenants. Platform administrators may read all tenants, other callers their own. */

import { isPlatformAdmin } from '../../decision/tenant.ts';
import { parseTenantId, type TenantId } from '../../domain/ids.ts';
import { authorize } from '../caller/authorize.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { notFound } from '../caller/refusals.ts';
import { type List, type ListQuery, paged } from '../list/list.ts';
import { type TenantResource, tenantResource } from './entity.ts';
import { countTenants, listTenants, type TenantFilter } from './list-queries.ts';
import { findTenant } from './queries.ts';

export interface TenantListQuery extends ListQuery, TenantFilter {}

export async function listTenantsPage(
  parts: AdminParts,
  caller: Caller,
  query: TenantListQuery,
): Promise<List<TenantResource>> {
  const { limit: _limit, cursor: _cursor, count: _count, ...filter } = query;
  return paged(
    caller,
    'tenants',
    query,
    (page) => listTenants(parts.db.knex, filter, page),
    (tenant) => [tenant.id],
    tenantResource,
    (most) => countTenants(parts.db.knex, filter, most),
  );
}

/** @throws Refusal `not_found`; `insufficient_permission` or `denied_by_policy` without the permission */
export async function getTenant(parts: AdminParts, caller: Caller, text: string): Promise<TenantResource> {
  authorize(caller, isPlatformAdmin(caller.principal) ? 'admin:tenants' : 'admin:users');
  const id = tenantIdOf(text);
  if (!isPlatformAdmin(caller.principal) && id !== caller.principal.tenantId) throw notFound('tenant');
  const tenant = await findTenant(parts.db.knex, id);
  if (tenant === undefined) throw notFound('tenant');
  return tenantResource(tenant);
}

/** @throws Refusal `not_found` for any text that cannot be an id */
export function tenantIdOf(text: string): TenantId {
  const id = parseTenantId(text);
  if (id === undefined) throw notFound('tenant');
  return id;
}
