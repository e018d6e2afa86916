/** One key, with the ETag that an edit sends. */

import { type QueryClient, queryOptions, useQuery } from '@tanstack/react-query';
import type { ApiKey } from '../../../../client/index.ts';
import type { Tagged } from '../../api/edit.ts';
import { type Tenant, useTenant } from '../../api/session.ts';

const KEY = '/v1/iam/api-keys/{id}';

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

/** Invalidates every query that shows keys of the tenant. */
export async function keysChanged(queries: QueryClient, tenant: string, id?: string): Promise<void> {
  const keys = [
    [tenant, 'keys'],
    [tenant, 'audit'],
    ...(id === undefined
      ? []
      : [
          [tenant, 'key', id],
          [tenant, 'name', id],
        ]),
  ];
  await Promise.all(keys.map((queryKey) => queries.invalidateQueries({ queryKey })));
}
