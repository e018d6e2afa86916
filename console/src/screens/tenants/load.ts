/** Where the rows of the list come from, and what else shows a tenant. */

import type { QueryClient } from '@tanstack/react-query';
import { ProblemError, type TenantList } from '../../../../client/index.ts';
import { client } from '../../api/client.ts';

/** Each visible row asks for its limits. */
const PAGE = 25;

/** One page of all tenants; or the one tenant of this id, as the API lists tenants without a search. */
export async function loadTenants(q: string, cursor: string | undefined, signal: AbortSignal): Promise<TenantList> {
  if (q === '') return client.request('GET', '/v1/iam/tenants', { query: { limit: PAGE, cursor }, signal });
  try {
    const found = await client.tenants.get(q.toLowerCase(), { signal });
    return { object: 'list', data: [found], has_more: false, next_cursor: null };
  } catch (error) {
    if (!(error instanceof ProblemError) || error.status !== 404) throw error;
    return { object: 'list', data: [], has_more: false, next_cursor: null };
  }
}

/** The tenants belong to no tenant; the caller's own stands first in the key, as in every key. */
export function tenantsKey(actingIn: string): readonly string[] {
  return [actingIn, 'tenants'];
}

/** Has everything asked again that shows the tenant. */
export async function tenantChanged(queries: QueryClient, actingIn: string, id: string): Promise<void> {
  const keys = [tenantsKey(actingIn), ['tenants'], [id, 'tenant'], [id, 'limits'], [actingIn, 'audit']];
  await Promise.all(keys.map((queryKey) => queries.invalidateQueries({ queryKey })));
}
