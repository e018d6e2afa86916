/** Roles as lists and pickers need them: a page at a time, a role of exactly the typed name first. */

import type { Role } from '../../../client/index.ts';
import { type List, useList, useNamedFirst } from './list.ts';
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
  const isChosen = ({ builtin, notices: found }: Role): boolean =>
    (kind === undefined || builtin === (kind === 'builtin')) && (notices === undefined || found !== undefined);
  return useNamedFirst(list, [tenant, 'roles'], q, (signal) => client.roles.get(q, { signal }), isChosen);
}
