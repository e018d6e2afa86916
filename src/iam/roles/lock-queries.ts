/** Locks of roles. A gate also takes them, so this file does not use the definition of a role, which loads schemas. */

import type { RoleName, TenantId } from '../../domain/ids.ts';
import type { Queryable } from '../../store/queryable.ts';
import type { RoleRow } from './entity.ts';

/**
 * Locks the custom roles with these names until the transaction ends: `update` to change a role, `share` to depend on
 * it. Returns the names of the roles that exist.
 */
export async function lockRoles(
  q: Queryable,
  tenant: TenantId,
  names: readonly RoleName[],
  mode: 'update' | 'share',
): Promise<ReadonlySet<RoleName>> {
  if (names.length === 0) return new Set();
  const rows = q<RoleRow>('roles')
    .where('tenant_id', tenant)
    .whereIn('name', [...names])
    .orderByRaw('name collate "C"')
    .select('name');
  return new Set((await (mode === 'update' ? rows.forUpdate() : rows.forShare())).map(({ name }) => name));
}
