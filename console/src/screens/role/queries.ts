/** One role, with the ETag that an edit sends. */

import { useQuery } from '@tanstack/react-query';
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

/** How many users have the role, by hand or by the directory. */
export interface Holders {
  readonly n: number;
  /** True: there are more than `n`. */
  readonly isMore: boolean;
}

/** Undefined: not known, or not for this caller to know. */
export function useHolders(role: string): Holders | undefined {
  const { id: tenant, client } = useTenant();
  const { data } = useQuery({
    queryKey: [tenant, 'users', 'count', { role }],
    queryFn: ({ signal }) => client.request('GET', '/v1/iam/users', { query: { role, limit: 1, count: true }, signal }),
    retry: false,
  });
  const n = data?.total ?? data?.total_exceeds;
  return n === undefined ? undefined : { n, isMore: data?.total === undefined };
}
