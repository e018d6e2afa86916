/** One role, with the ETag that an edit sends. */

import { useQuery } from '@tanstack/react-query';
import type { Role } from '../../../../client/index.ts';
import { type Read, tagged, useOne } from '../../api/one.ts';
import { useTenant } from '../../api/session.ts';

export const readRole: Read<Role> = ({ client }, name, signal) =>
  tagged(client.send('GET', '/v1/iam/roles/{name}', { path: { name }, signal }));

export function useRole(name: string) {
  return useOne('role', name, readRole);
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
