/** The current names of users, keys and tenants, by their ids. */

import { scopeBinding, scopeCondition, type TenantScope } from '../../store/paging.ts';
import type { Queryable } from '../../store/queryable.ts';

export type NamedKind = 'user' | 'api_key' | 'tenant';

/** A key without a name is shown by its description. */
const NAMES: Readonly<Record<NamedKind, string>> = {
  user: 'select id, name from users',
  api_key: 'select id, coalesce(name, description) as name from api_keys',
  tenant: 'select id, name from tenants',
};

const TENANT_OF: Readonly<Record<NamedKind, string>> = { user: 'tenant_id', api_key: 'tenant_id', tenant: 'id' };

/** Returns the names by id, without those of resources outside the scope. */
export async function namesOfIds(
  q: Queryable,
  scope: TenantScope,
  kind: NamedKind,
  ids: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  if (ids.length === 0) return new Map();
  const { rows } = await q.raw<{ rows: { id: string; name: string }[] }>(
    `${NAMES[kind]} where id = any(:ids) and ${scopeCondition(scope, TENANT_OF[kind])}`,
    { ids, ...scopeBinding(scope) },
  );
  return new Map(rows.map(({ id, name }) => [id, name]));
}
