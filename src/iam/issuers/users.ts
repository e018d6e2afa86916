/** How an issuer proves users: the mapping of its claims to roles. */

import { parseRoleName, type RoleName, type TenantId } from '../../domain/ids.ts';
import type { FieldError } from '../../domain/problem-details.ts';
import type { IssuerUsers } from '../../domain/records.ts';
import { isBuiltinRole } from '../../domain/roles.ts';
import type { Transaction } from '../../store/transaction.ts';
import { lockRoles } from '../roles/lock-queries.ts';
import { claimErrors, claimRuleErrors } from './claim-rules.ts';

export function usersOf(request: Partial<IssuerUsers> | null): IssuerUsers | null {
  if (request === null) return null;
  const { subject_claim = 'sub', create = false, roles = [], default_roles = [], ...claims } = request;
  return { subject_claim, ...claims, create, roles, default_roles };
}

export function usersErrors(users: IssuerUsers | null): readonly FieldError[] {
  if (users === null) return [];
  return [
    ...claimErrors(users.subject_claim, '/users/subject_claim'),
    ...claimErrors(users.email_claim, '/users/email_claim'),
    ...claimErrors(users.name_claim, '/users/name_claim'),
    ...claimRuleErrors(users.roles, '/users/roles'),
  ];
}

/** Returns each role that the mapping names once. */
export function rolesOfMapping(users: IssuerUsers | null): readonly RoleName[] {
  return users === null ? [] : [...new Set([...users.default_roles, ...users.roles.flatMap(({ roles }) => roles)])];
}

/**
 * Locks the roles of a mapping, so that none is changed or deleted before the commit, and returns an error for each
 * place that names no role of the tenant.
 */
export async function unknownRoles(
  trx: Transaction,
  tenant: TenantId,
  users: IssuerUsers | null,
): Promise<readonly FieldError[]> {
  if (users === null) return [];
  const named = rolesOfMapping(users)
    .map(parseRoleName)
    .filter((name) => name !== undefined && !isBuiltinRole(name))
    .filter((name) => name !== undefined);
  const found: ReadonlySet<string> = await lockRoles(trx, tenant, named, 'share');
  const places = [
    ...users.roles.flatMap(({ roles }, i) =>
      roles.map((role, at) => ({ role, path: `/users/roles/${i}/roles/${at}` })),
    ),
    ...users.default_roles.map((role, at) => ({ role, path: `/users/default_roles/${at}` })),
  ];
  return places
    .filter(({ role }) => !isBuiltinRole(role) && !found.has(role))
    .map(({ path }) => ({ path, message: 'This role does not exist in the tenant.' }));
}
