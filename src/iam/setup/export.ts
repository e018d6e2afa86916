/** Exports the resources of the database in the form of a setup file, in parts of bounded size and in a fixed order. */

import type { TenantId } from '../../domain/ids.ts';
import type { Database } from '../../store/database.ts';
import type { Queryable } from '../../store/queryable.ts';
import { orNotFound } from '../caller/refusals.ts';
import type { TenantRow } from '../tenants/entity.ts';
import { findTenant } from '../tenants/queries.ts';
import { BUDGET_MEMBERS, listSetupBudgets } from './budgets.ts';
import {
  listAllTenants,
  listGlobalPolicies,
  listTenantIssuers,
  listTenantRoles,
  listTenantWebhooks,
  listVisiblePolicies,
} from './current-state.ts';
import { ISSUER_MEMBERS } from './issuers.ts';
import { type SetupMembers, type View, viewOf } from './members.ts';
import { countOtherUsers, localUsers } from './queries.ts';
import { POLICY_MEMBERS, ROLE_MEMBERS } from './rules.ts';
import { TENANT_MEMBERS } from './tenants.ts';
import { USER_MEMBERS } from './users.ts';
import { WEBHOOK_MEMBERS } from './webhooks.ts';

/** A part of an export, in the order of the parts. */
export type ExportPart =
  | { readonly kind: 'global policies'; readonly policies: readonly View[] }
  /** A tenant. Its users follow. */
  | { readonly kind: 'tenant'; readonly tenant: View }
  /** At least one user of the tenant. */
  | { readonly kind: 'users'; readonly users: readonly View[] }
  /** The number of users that a setup file cannot contain. Absent if users are not exported. */
  | { readonly kind: 'end of users'; readonly others: number };

interface ExportOptions {
  /** Undefined: all tenants and the global policies. */
  readonly tenant: TenantId | undefined;
  readonly users: boolean;
}

const USERS_AT_ONCE = 1000;

/**
 * Passes all parts to `take`, from one snapshot of the database.
 * @throws Refusal `not_found`
 */
export async function exportSetup(
  db: Database,
  options: ExportOptions,
  take: (part: ExportPart) => void,
): Promise<void> {
  const read = async (trx: Queryable): Promise<void> => {
    if (options.tenant === undefined) {
      take({ kind: 'global policies', policies: (await listGlobalPolicies(trx)).map(named(POLICY_MEMBERS)) });
    }
    for (const tenant of await tenantsOf(trx, options.tenant)) await exportTenant(trx, tenant, options, take);
  };
  await db.knex.transaction(read, { isolationLevel: 'repeatable read', readOnly: true });
}

async function tenantsOf(trx: Queryable, id: TenantId | undefined): Promise<readonly TenantRow[]> {
  if (id === undefined) return listAllTenants(trx);
  const tenant = orNotFound(await findTenant(trx, id), 'tenant');
  return [tenant];
}

async function exportTenant(
  trx: Queryable,
  tenant: TenantRow,
  { users }: ExportOptions,
  take: (part: ExportPart) => void,
): Promise<void> {
  const roles = (await listTenantRoles(trx, tenant.id)).map(named(ROLE_MEMBERS));
  const visible = await listVisiblePolicies(trx, tenant.id);
  const policies = visible.filter((policy) => policy.tenant_id !== null).map(named(POLICY_MEMBERS));
  const issuers = (await listTenantIssuers(trx, tenant.id)).map(named(ISSUER_MEMBERS));
  const webhooks = (await listTenantWebhooks(trx, tenant.id)).map((row) => ({
    url: row.url,
    ...viewOf(WEBHOOK_MEMBERS, row),
  }));
  const budgets = (await listSetupBudgets(trx, tenant.id)).map((budget) => ({
    name: budget.row.name,
    ...viewOf(BUDGET_MEMBERS, budget),
  }));
  const parts = {
    ...{ roles, policies, issuers },
    ...(webhooks.length === 0 ? {} : { webhooks }),
    ...(budgets.length === 0 ? {} : { budgets }),
  };
  take({ kind: 'tenant', tenant: { id: tenant.id, ...viewOf(TENANT_MEMBERS, tenant), ...parts } });
  if (!users) return;
  for await (const some of localUsers(trx, tenant.id, USERS_AT_ONCE)) {
    take({ kind: 'users', users: some.map((user) => ({ email: user.email, ...viewOf(USER_MEMBERS, user) })) });
  }
  take({ kind: 'end of users', others: await countOtherUsers(trx, tenant.id) });
}

function named<Values extends object>(
  members: SetupMembers<Values>,
): (row: Values & { readonly name: string }) => View {
  return (row) => ({ name: row.name, ...viewOf(members, row) });
}
