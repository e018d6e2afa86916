/** Policies as lists and editors need them. */

import { useQuery } from '@tanstack/react-query';
import type { Policy } from '../../../client/index.ts';
import { type List, useList, useNamedFirst } from './list.ts';
import { type Read, tagged, useOne } from './one.ts';
import type { SearchText } from './search-text.ts';
import { useTenant } from './session.ts';

const PAGE = 50;

/** The filters of the list, as the API has them. An absent filter matches every policy. */
export interface PolicyFilter {
  /** Part of a name or description. */
  readonly q?: SearchText | undefined;
  readonly effect?: 'allow' | 'deny' | undefined;
  readonly mode?: 'enforce' | 'report' | undefined;
  readonly enabled?: boolean | undefined;
  /** True: only those with a notice. */
  readonly notices?: true | undefined;
}

/** A policy with exactly the searched name comes first, also if it is on a later page. */
export function usePolicies(filter: PolicyFilter): List<Policy> {
  const tenant = useTenant();
  const q = filter.q ?? '';
  const query = { ...filter, q: q === '' ? undefined : q };
  const list = useList<'/v1/iam/policies'>([tenant.id, 'policies', query], (cursor, signal) =>
    tenant.client.request('GET', '/v1/iam/policies', { query: { ...query, limit: PAGE, cursor }, signal }),
  );
  const read = (signal: AbortSignal): Promise<Policy> => tenant.client.policies.get(q, { signal });
  return useNamedFirst(list, [tenant.id, 'policies'], q, read, (policy) => isChosen(policy, filter));
}

function isChosen(policy: Policy, { effect, mode, enabled, notices }: PolicyFilter): boolean {
  return (
    (effect === undefined || policy.effect === effect) &&
    (mode === undefined || policy.mode === mode) &&
    (enabled === undefined || policy.enabled === enabled) &&
    (notices === undefined || policy.notices !== undefined)
  );
}

export const readPolicy: Read<Policy> = ({ client }, name, signal) =>
  tagged(client.send('GET', '/v1/iam/policies/{name}', { path: { name }, signal }));

export function usePolicy(name: string) {
  return useOne('policy', name, readPolicy);
}

/** The time zone of the tenant's clock; undefined: not known, or not for this caller to know. */
export function useTenantZone(): string | undefined {
  const { id, client } = useTenant();
  const { data } = useQuery({
    queryKey: [id, 'zone of the tenant'],
    queryFn: ({ signal }) => client.tenants.get(id, { signal }),
    retry: false,
  });
  return data === undefined ? undefined : (data.settings.timezone ?? 'UTC');
}
