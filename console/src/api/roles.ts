/** Roles as lists and pickers need them: a page at a time, a role of exactly the typed name first. */

import { useQuery } from '@tanstack/react-query';
import { ProblemError, type Role } from '../../../client/index.ts';
import { type List, useList } from './list.ts';
import { isName } from './names.ts';
import type { SearchText } from './search-text.ts';
import { useTenant } from './session.ts';

const PAGE = 50;

export type RoleKind = 'builtin' | 'own';

/**
 * @param q part of a name or description
 * @param kind undefined: both
 * @param notices true: only those with a notice
 */
export function useRoles(q: SearchText | '', kind?: RoleKind, notices?: true): List<Role> {
  const { id: tenant, client } = useTenant();
  const query = { q: q === '' ? undefined : q, builtin: kind === undefined ? undefined : kind === 'builtin', notices };
  const list = useList<'/v1/iam/roles'>([tenant, 'roles', query], (cursor, signal) =>
    client.request('GET', '/v1/iam/roles', { query: { ...query, limit: PAGE, cursor }, signal }),
  );
  const exact = useQuery({
    queryKey: [tenant, 'roles', 'named', q],
    queryFn: async ({ signal }) => {
      try {
        return await client.roles.get(q, { signal });
      } catch (error) {
        if (error instanceof ProblemError && error.status === 404) return null;
        throw error;
      }
    },
    enabled: isName(q),
    retry: false,
  });
  if (list.kind !== 'loaded') return list;
  const first = exact.data ?? undefined;
  if (first === undefined || (kind !== undefined && first.builtin !== (kind === 'builtin'))) return list;
  if (notices === true && first.notices === undefined) return list;
  return { ...list, rows: [first, ...list.rows.filter(({ name }) => name !== first.name)] };
}
