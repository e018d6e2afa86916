/** A set-up as it is in the database, in the form of a document: parts in a fixed order, each small enough to be held. */

import type { TenantId } from '../../domain/ids.ts';
import type { Database } from '../../store/database.ts';
import type { Queryable } from '../../store/queryable.ts';
import { notFound } from '../caller/refusals.ts';
import type { StoredPolicy } from '../policies/queries.ts';
import { findTenant, type StoredTenant } from '../tenants/queries.ts';
import { listAllTenants, listGlobalPolicies, listTenantRoles, listVisiblePolicies } from './current-state.ts';
import { countOtherUsers, localUsers } from './queries.ts';
import { policyView, roleView, tenantView, userView, type View } from './view.ts';

/** What is exported, in the order in which it comes. */
export type ExportPart =
  | { readonly kind: 'global policies'; readonly policies: readonly View[] }
  /** The tenant without its users, which follow. */
  | { readonly kind: 'tenant'; readonly tenant: View }
  /** Some of its users, never none. */
  | { readonly kind: 'users'; readonly users: readonly View[] }
  /** How many users it has whom a set-up has no place for. Where users are left out, this does not come. */
  | { readonly kind: 'end of users'; readonly others: number };

export interface ExportOptions {
  /** Undefined = all of them, and the global policies. */
  readonly tenant: TenantId | undefined;
  readonly users: boolean;
}

const USERS_AT_ONCE = 1000;

/**
 * Hands out all parts as they were at one instant.
 * @throws Refusal `not_found`
 */
export async function exportSetup(
  db: Database,
  options: ExportOptions,
  take: (part: ExportPart) => void,
): Promise<void> {
  const read = async (trx: Queryable): Promise<void> => {
    if (options.tenant === undefined) {
      take({ kind: 'global policies', policies: (await listGlobalPolicies(trx)).map(namedPolicy) });
    }
    for (const tenant of await tenantsOf(trx, options.tenant)) await exportTenant(trx, tenant, options, take);
  };
  await db.knex.transaction(read, { isolationLevel: 'repeatable read', readOnly: true });
}

async function tenantsOf(trx: Queryable, id: TenantId | undefined): Promise<readonly StoredTenant[]> {
  if (id === undefined) return listAllTenants(trx);
  const tenant = await findTenant(trx, id);
  if (tenant === undefined) throw notFound('tenant');
  return [tenant];
}

async function exportTenant(
  trx: Queryable,
  tenant: StoredTenant,
  { users }: ExportOptions,
  take: (part: ExportPart) => void,
): Promise<void> {
  const roles = (await listTenantRoles(trx, tenant.id)).map((role) => ({ name: role.name, ...roleView(role) }));
  const policies = (await listVisiblePolicies(trx, tenant.id))
    .filter((policy) => policy.tenantId !== undefined)
    .map(namedPolicy);
  take({ kind: 'tenant', tenant: { id: tenant.id, ...tenantView(tenant), roles, policies } });
  if (!users) return;
  for await (const some of localUsers(trx, tenant.id, USERS_AT_ONCE)) {
    take({ kind: 'users', users: some.map((user) => ({ email: user.email, ...userView(user) })) });
  }
  take({ kind: 'end of users', others: await countOtherUsers(trx, tenant.id) });
}

function namedPolicy(policy: StoredPolicy): View {
  return { name: policy.name, ...policyView(policy) };
}
