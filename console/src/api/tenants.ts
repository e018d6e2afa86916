/**
 * Tenants as pickers need them: at most a page, a tenant of exactly the typed id first. For platform administrators.
 */

import { useQuery } from '@tanstack/react-query';
import { ProblemError, type Tenant } from '../../../client/index.ts';
import { client } from './client.ts';
import { whileSearching } from './queries.ts';
import type { SearchText } from './search-text.ts';

const ID = /^[a-z0-9-]{1,63}$/;

export interface FoundTenants {
  readonly rows: readonly Tenant[];
  /** There are others that are not among the rows. */
  readonly hasMore: boolean;
}

/**
 * @param q part of a name or id; empty: of all
 * @param limit of the page
 */
export async function findTenants(q: SearchText | '', limit: number, signal: AbortSignal): Promise<FoundTenants> {
  const page = await client.request('GET', '/v1/iam/tenants', { query: { limit, ...(q === '' ? {} : { q }) }, signal });
  const hasMore = page.next_cursor !== null;
  const exact =
    hasMore && ID.test(q) && !page.data.some(({ id }) => id === q) ? await readTenant(q, signal) : undefined;
  const named = page.data.filter(({ id }) => id === q);
  return { rows: [...(exact === undefined ? named : [exact]), ...page.data.filter(({ id }) => id !== q)], hasMore };
}

async function readTenant(id: string, signal: AbortSignal): Promise<Tenant | undefined> {
  try {
    return await client.tenants.get(id, { signal });
  } catch (error) {
    if (error instanceof ProblemError && error.status === 404) return undefined;
    throw error;
  }
}

export function useFoundTenants(q: SearchText, limit: number) {
  const queryKey = ['tenants', limit, q];
  return useQuery({
    queryKey,
    queryFn: ({ signal }) => findTenants(q, limit, signal),
    placeholderData: whileSearching(queryKey),
  });
}
