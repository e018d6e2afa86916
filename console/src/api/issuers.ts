/** Issuers as lists, pickers and editors need them. */

import { useQuery } from '@tanstack/react-query';
import type { Issuer } from '../../../client/index.ts';
import type { Tagged } from './edit.ts';
import { type List, useList } from './list.ts';
import type { SearchText } from './search-text.ts';
import { type Tenant, useTenant } from './session.ts';

const PAGE = 50;
const ISSUER = '/v1/iam/issuers/{id}';

interface IssuersFilter {
  readonly q?: SearchText | undefined;
  readonly enabled?: boolean | undefined;
}

/** A list of the tenant's issuers, a page at a time. */
export function useIssuers(filter: IssuersFilter): List<Issuer> {
  const { id: tenant, client } = useTenant();
  return useList<'/v1/iam/issuers'>([tenant, 'issuers', filter], (cursor, signal) =>
    client.request('GET', '/v1/iam/issuers', {
      query: { ...filter, limit: PAGE, cursor, ...(cursor === undefined ? { count: true } : {}) },
      signal,
    }),
  );
}

/** Reads one issuer with the ETag that an edit sends. */
export async function readIssuer({ client }: Tenant, id: string, signal?: AbortSignal): Promise<Tagged<Issuer>> {
  const { data, etag } = await client.send('GET', ISSUER, { path: { id }, signal });
  return { data, etag };
}

export function useIssuer(id: string) {
  const tenant = useTenant();
  return useQuery({
    queryKey: [tenant.id, 'issuer', id],
    queryFn: ({ signal }) => readIssuer(tenant, id, signal),
  });
}
