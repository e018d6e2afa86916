/** One user, with the ETag that an edit sends. */

import { type QueryClient, queryOptions, useQuery } from '@tanstack/react-query';
import type { User } from '../../../../client/index.ts';
import type { Tagged } from '../../api/edit.ts';
import { type Tenant, useTenant } from '../../api/session.ts';

const USER = '/v1/iam/users/{id}';

export async function readUser({ client }: Tenant, id: string, signal?: AbortSignal): Promise<Tagged<User>> {
  const { data, etag } = await client.send('GET', USER, { path: { id }, signal });
  return { data, etag };
}

export function useUser(id: string) {
  const tenant = useTenant();
  return useQuery(queryOptions({ queryKey: [tenant.id, 'user', id], queryFn: ({ signal }) => readUser(tenant, id, signal) }));
}

/** Everything that shows the user is asked for again. */
export async function userChanged(queries: QueryClient, tenant: string, id: string): Promise<void> {
  await Promise.all(
    [[tenant, 'users'], [tenant, 'user', id], [tenant, 'name', id], [tenant, 'audit'], [tenant, 'keys'], ['me']].map((queryKey) =>
      queries.invalidateQueries({ queryKey }),
    ),
  );
}
