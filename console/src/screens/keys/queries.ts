/** Pages of keys, and one key with the ETag that an edit sends. */

import { queryOptions, useQuery } from '@tanstack/react-query';
import { type ApiKey, ProblemError } from '../../../../client/index.ts';
import type { Tagged } from '../../api/edit.ts';
import { type List, type ListQuery, useList } from '../../api/list.ts';
import { type Tenant, useDenied, useTenant } from '../../api/session.ts';

const KEYS = '/v1/iam/api-keys';
const KEY = '/v1/iam/api-keys/{id}';
const PAGE = 50;

/** Lists keys, with their owners for callers that may see users. */
export function useKeys(query: ListQuery<typeof KEYS>): List<ApiKey> {
  const { id, client } = useTenant();
  const seesOwners = useDenied('admin:users') === undefined;
  return useList<typeof KEYS>([id, 'keys', query], async (cursor, signal) => {
    const page = { ...query, limit: PAGE, cursor, ...(cursor === undefined ? { count: true } : {}) };
    try {
      return await client.request('GET', KEYS, { query: seesOwners ? { ...page, include: 'owner' } : page, signal });
    } catch (error) {
      // A policy may deny users what their roles give.
      if (!seesOwners || !(error instanceof ProblemError) || error.status !== 403) throw error;
      return client.request('GET', KEYS, { query: page, signal });
    }
  });
}

export async function readKey({ client }: Tenant, id: string, signal?: AbortSignal): Promise<Tagged<ApiKey>> {
  const { data, etag } = await client.send('GET', KEY, { path: { id }, signal });
  return { data, etag };
}

export function useKey(id: string) {
  const tenant = useTenant();
  return useQuery(
    queryOptions({ queryKey: [tenant.id, 'key', id], queryFn: ({ signal }) => readKey(tenant, id, signal) }),
  );
}
