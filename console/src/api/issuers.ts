/** Issuers as lists, pickers and editors need them. */

import type { Issuer } from '../../../client/index.ts';
import { type List, useList } from './list.ts';
import { type Read, tagged, useOne } from './one.ts';
import type { SearchText } from './search-text.ts';
import { useTenant } from './session.ts';

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

export const readIssuer: Read<Issuer> = ({ client }, id, signal) =>
  tagged(client.send('GET', ISSUER, { path: { id }, signal }));

export function useIssuer(id: string) {
  return useOne('issuer', id, readIssuer);
}
