/** Giving roles to users by name. */

import { parseRoleName, type RoleName, type TenantId } from '../../domain/ids.ts';
import { isBuiltinRole } from '../../domain/roles.ts';
import type { Transaction } from '../../store/transaction.ts';
import { throwIfInvalid } from '../caller/refusals.ts';
import { findRoles, lockRoles } from '../roles/queries.ts';

/** Each once, in the order in which the database gives them. */
export function sortedRoles(roles: readonly RoleName[]): readonly RoleName[] {
  return [...new Set(roles)].sort((left, right) => (left < right ? -1 : 1));
}

/**
 * Reads role names of the user's tenant and holds those roles, so that none is changed or deleted while it is being given.
 * @param path JSON pointer of the list
 * @throws Refusal `invalid_field` naming every unknown one
 */
export async function knownRoles(
  trx: Transaction,
  tenant: TenantId,
  names: readonly string[],
  path: string,
): Promise<readonly RoleName[]> {
  const parsed = names.map(parseRoleName);
  const custom = parsed
    .filter((name) => name !== undefined && !isBuiltinRole(name))
    .filter((name) => name !== undefined);
  await lockRoles(trx, tenant, custom, 'share');
  const found = new Set((await findRoles(trx, tenant, custom)).map((role) => role.name));
  const known = parsed.map((name) =>
    name !== undefined && (isBuiltinRole(name) || found.has(name)) ? name : undefined,
  );
  throwIfInvalid(
    known.flatMap((name, i) =>
      name === undefined ? [{ path: `${path}/${i}`, message: 'This role does not exist in the tenant.' }] : [],
    ),
  );
  return [...new Set(known.filter((name) => name !== undefined))];
}
