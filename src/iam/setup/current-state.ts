/** Reads the resources that a setup names, and locks them before a change. */

import { DEFAULT_TENANT, type TenantId } from '../../domain/ids.ts';
import { compareTexts } from '../../domain/text.ts';
import type { Page, PageRows } from '../../store/paging.ts';
import type { Queryable } from '../../store/queryable.ts';
import { listIssuers, type StoredIssuer } from '../issuers/queries.ts';
import type { PolicyRow } from '../policies/entity.ts';
import { listPolicies } from '../policies/queries.ts';
import type { RoleRow } from '../roles/entity.ts';
import { listRoles } from '../roles/queries.ts';
import type { TenantRow } from '../tenants/entity.ts';
import { listTenants } from '../tenants/list-queries.ts';
import { findTenant } from '../tenants/queries.ts';
import { lockAdministrators } from '../users/administrator-queries.ts';
import type { UserRow } from '../users/entity.ts';
import type { WebhookRow } from '../webhooks/entity.ts';
import { listWebhooks } from '../webhooks/queries.ts';
import { absentCallers, listSetupBudgets, type SetupBudget } from './budgets.ts';
import { deletedTenants, lockGlobalPolicies, lockTenants, lockUsersOfSetup, usersForSetup } from './queries.ts';
import type { Setup } from './read.ts';

export interface TenantState {
  /** Undefined if the tenant does not exist. */
  readonly tenant: TenantRow | undefined;
  /** True if the id belongs to a deleted tenant. */
  readonly deleted: boolean;
  readonly roles: readonly RoleRow[];
  readonly policies: readonly PolicyRow[];
  readonly issuers: readonly StoredIssuer[];
  readonly webhooks: readonly WebhookRow[];
  readonly budgets: readonly SetupBudget[];
  /** The keys and users that the setup's budgets name and the tenant does not have. */
  readonly absentCallers: ReadonlySet<string>;
}

export interface CurrentState {
  readonly tenants: ReadonlyMap<TenantId, TenantState>;
  /** The tenants that the setup does not name. Empty unless they are pruned. */
  readonly otherTenants: readonly TenantRow[];
  readonly globalPolicies: readonly PolicyRow[];
  /**
   * The users with the setup's email addresses in any tenant, and the local users of tenants whose users are pruned.
   */
  readonly users: readonly UserRow[];
}

export interface PruneOptions {
  /** Deletes resources that the lists of the setup do not name. */
  readonly prune: boolean;
  /** Deletes tenants that the setup does not name. */
  readonly pruneTenants: boolean;
}

/** @param lock locks the resources until the transaction ends */
export async function readCurrentState(
  trx: Queryable,
  setup: Setup,
  options: PruneOptions,
  lock: boolean,
): Promise<CurrentState> {
  const ids = setup.tenants.map((tenant) => tenant.key);
  const emails = setup.tenants.flatMap((tenant) => (tenant.users ?? []).map((user) => user.key));
  const pruned = options.prune
    ? setup.tenants.filter((tenant) => tenant.users !== undefined).map((tenant) => tenant.key)
    : [];
  const prunesTenants = options.pruneTenants && setup.listsTenants;
  if (lock) {
    await lockAdministrators(trx);
    await lockTenants(trx, prunesTenants ? (await listAllTenants(trx)).map((tenant) => tenant.id).concat(ids) : ids);
    await lockGlobalPolicies(trx);
    await lockUsersOfSetup(trx, emails, pruned);
  }
  const deleted = await deletedTenants(trx, ids);
  const tenants = new Map<TenantId, TenantState>();
  for (const { key: id, budgets } of setup.tenants) {
    tenants.set(id, {
      tenant: await findTenant(trx, id),
      deleted: deleted.has(id),
      roles: await listTenantRoles(trx, id),
      policies: (await listVisiblePolicies(trx, id)).filter((policy) => policy.tenant_id !== null),
      issuers: await listTenantIssuers(trx, id),
      webhooks: await listTenantWebhooks(trx, id),
      budgets: await listSetupBudgets(trx, id),
      absentCallers: await absentCallers(trx, id, budgets),
    });
  }
  return {
    tenants,
    otherTenants: prunesTenants ? (await listAllTenants(trx)).filter((tenant) => !tenants.has(tenant.id)) : [],
    globalPolicies: await listGlobalPolicies(trx),
    users: await usersForSetup(trx, emails, pruned),
  };
}

export function listAllTenants(trx: Queryable): Promise<readonly TenantRow[]> {
  return every(
    (page) => listTenants(trx, {}, page),
    (tenant) => [tenant.id],
  );
}

export function listTenantRoles(trx: Queryable, tenant: TenantId): Promise<readonly RoleRow[]> {
  return every(
    (page) => listRoles(trx, { kind: 'one', tenant }, {}, page),
    (role) => [role.name, role.tenant_id],
  );
}

export function listTenantIssuers(trx: Queryable, tenant: TenantId): Promise<readonly StoredIssuer[]> {
  return every(
    (page) => listIssuers(trx, { kind: 'one', tenant }, {}, page),
    (issuer) => [issuer.name, issuer.tenant_id],
  );
}

/** Returns the tenant's webhooks, which are few, by their URLs, which identify them in a file. */
export async function listTenantWebhooks(trx: Queryable, tenant: TenantId): Promise<readonly WebhookRow[]> {
  const rows = await listWebhooks(trx, { kind: 'one', tenant }, { after: undefined, take: PAGE_ROWS });
  return rows.toSorted((left, right) => compareTexts(left.url, right.url));
}

/** Returns the tenant's policies and the global ones. */
export function listVisiblePolicies(trx: Queryable, tenant: TenantId): Promise<readonly PolicyRow[]> {
  return every(
    (page) => listPolicies(trx, { kind: 'one', tenant }, {}, page),
    (policy) => [policy.name, policy.tenant_id ?? ''],
  );
}

const PAGE_ROWS = 1000;

/** Returns all pages of a list. */
async function every<Row>(
  fetch: (page: Page) => Promise<readonly Row[] | PageRows<Row>>,
  position: (row: Row) => readonly string[],
): Promise<readonly Row[]> {
  const rows: Row[] = [];
  for (let after: readonly string[] | undefined; ; ) {
    const fetched = await fetch({ after, take: PAGE_ROWS });
    const page = 'more' in fetched ? fetched.rows : fetched;
    rows.push(...page);
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE_ROWS) return rows;
    after = position(last);
  }
}

/** Returns the global policies, which are in the list of every tenant. */
export async function listGlobalPolicies(trx: Queryable): Promise<readonly PolicyRow[]> {
  return (await listVisiblePolicies(trx, DEFAULT_TENANT)).filter((policy) => policy.tenant_id === null);
}
