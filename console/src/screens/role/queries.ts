/** One role, with the ETag that an edit sends. */

import { type QueryClient, useQuery } from '@tanstack/react-query';
import type { Role } from '../../../../client/index.ts';
import type { Tagged } from '../../api/edit.ts';
import { type Tenant, useTenant } from '../../api/session.ts';

export async function readRole({ client }: Tenant, name: string, signal?: AbortSignal): Promise<Tagged<Role>> {
  const { data, etag } = await client.send('GET', '/v1/iam/roles/{name}', { path: { name }, signal });
  return { data, etag };
}

export function useRole(name: string) {
  const tenant = useTenant();
  return useQuery({
    queryKey: [tenant.id, 'role', name],
    queryFn: ({ signal }) => readRole(tenant, name, signal),
  });
}

/** Everything that shows roles is asked for again. */
export async function rolesChanged(queries: QueryClient, tenant: string): Promise<void> {
  const keys = [[tenant, 'roles'], [tenant, 'role'], [tenant, 'users'], [tenant, 'user'], [tenant, 'audit'], ['me']];
  await Promise.all(keys.map((queryKey) => queries.invalidateQueries({ queryKey })));
}
