/** Where the rows of the list come from, and what else shows a tenant. */

import type { TenantList } from '../../../../client/index.ts';
import { invalidate } from '../../api/changed.ts';
import { client } from '../../api/client.ts';
import type { SearchText } from '../../api/search-text.ts';
import type { TenantsSearch } from './search.ts';

const PAGE = 50;

interface TenantFilter {
  /** Part of a name or id. */
  readonly q: SearchText | undefined;
  readonly status: TenantsSearch['status'];
  readonly sort: NonNullable<TenantsSearch['sort']>;
}

/** Loads a page of tenants with their limits. */
export async function loadTenants(
  { q, status, sort }: TenantFilter,
  cursor: string | undefined,
  signal: AbortSignal,
): Promise<TenantList> {
  const shown = status === 'near' ? ({ near_limit: true } as const) : { status };
  const query = { limit: PAGE, cursor, q, sort, include: 'limits', ...shown } as const;
  return client.request('GET', '/v1/iam/tenants', { query, signal });
}

/** The tenants belong to no tenant; the caller's own stands first in the key, as in every key. */
export function tenantsKey(actingIn: string): readonly string[] {
  return [actingIn, 'tenants'];
}

/** Has everything asked again that shows the tenant. */
export function tenantChanged(actingIn: string, id: string): Promise<void> {
  return invalidate([tenantsKey(actingIn), ['tenants'], [id, 'tenant'], [id, 'limits'], [actingIn, 'audit']]);
}
