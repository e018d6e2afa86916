/** What the database has of the things that a set-up speaks of, read at once; and held, where it is about to be changed. */

import { DEFAULT_TENANT, type TenantId } from '../../domain/ids.ts';
import type { Page, PageRows } from '../../store/paging.ts';
import type { Queryable } from '../../store/queryable.ts';
import { listPolicies, type StoredPolicy } from '../policies/queries.ts';
import { listRoles, type StoredRole } from '../roles/queries.ts';
import { listTenants } from '../tenants/list-queries.ts';
import { findTenant, type StoredTenant } from '../tenants/queries.ts';
import { lockAdministrators } from '../users/administrator-queries.ts';
import type { StoredUser } from '../users/queries.ts';
import { deletedTenants, holdGlobalPolicies, holdTenants, holdUsers, usersForSetup } from './queries.ts';
import type { Setup } from './setup.ts';

export interface TenantState {
  /** Undefined when there is none yet. */
  readonly tenant: StoredTenant | undefined;
  /** The id was that of a tenant which is deleted. */
  readonly deleted: boolean;
  readonly roles: readonly StoredRole[];
  readonly policies: readonly StoredPolicy[];
}

export interface CurrentState {
  readonly tenants: ReadonlyMap<TenantId, TenantState>;
  /** Those that the set-up does not name; read when they are to be pruned. */
  readonly otherTenants: readonly StoredTenant[];
  readonly globalPolicies: readonly StoredPolicy[];
  /** The users of the set-up's addresses, in whatever tenant; and all local ones of the tenants whose users are to be pruned. */
  readonly users: readonly StoredUser[];
}

export interface PruneOptions {
  /** Delete what the lists of the set-up do not name. */
  readonly prune: boolean;
  /** Delete the tenants that the set-up does not name. */
  readonly pruneTenants: boolean;
}

/** @param hold keeps all of it as it is until the transaction ends */
export async function readCurrentState(
  trx: Queryable,
  setup: Setup,
  options: PruneOptions,
  hold: boolean,
): Promise<CurrentState> {
  const ids = setup.tenants.map((tenant) => tenant.id);
  const emails = setup.tenants.flatMap((tenant) => (tenant.users ?? []).map((user) => user.email));
  const pruned = options.prune
    ? setup.tenants.filter((tenant) => tenant.users !== undefined).map((tenant) => tenant.id)
    : [];
  const prunesTenants = options.pruneTenants && setup.listsTenants;
  if (hold) {
    await lockAdministrators(trx);
    await holdTenants(trx, prunesTenants ? (await listAllTenants(trx)).map((tenant) => tenant.id).concat(ids) : ids);
    await holdGlobalPolicies(trx);
    await holdUsers(trx, emails, pruned);
  }
  const deleted = await deletedTenants(trx, ids);
  const tenants = new Map<TenantId, TenantState>();
  for (const id of ids) {
    tenants.set(id, {
      tenant: await findTenant(trx, id),
      deleted: deleted.has(id),
      roles: await listTenantRoles(trx, id),
      policies: (await listVisiblePolicies(trx, id)).filter((policy) => policy.tenantId !== undefined),
    });
  }
  return {
    tenants,
    otherTenants: prunesTenants ? (await listAllTenants(trx)).filter((tenant) => !tenants.has(tenant.id)) : [],
    globalPolicies: await listGlobalPolicies(trx),
    users: await usersForSetup(trx, emails, pruned),
  };
}

export function listAllTenants(trx: Queryable): Promise<readonly StoredTenant[]> {
  return every(
    (page) => listTenants(trx, {}, page),
    (tenant) => [tenant.id],
  );
}

export function listTenantRoles(trx: Queryable, tenant: TenantId): Promise<readonly StoredRole[]> {
  return every(
    (page) => listRoles(trx, { kind: 'one', tenant }, {}, page),
    (role) => [role.name, role.tenantId],
  );
}

/** The tenant's own and the global ones. */
export function listVisiblePolicies(trx: Queryable, tenant: TenantId): Promise<readonly StoredPolicy[]> {
  return every(
    (page) => listPolicies(trx, { kind: 'one', tenant }, {}, page),
    (policy) => [policy.name, policy.tenantId ?? ''],
  );
}

const PAGE_ROWS = 1000;

/** All pages of a list. */
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

/** They are in the list of every tenant, whether or not it exists. */
export async function listGlobalPolicies(trx: Queryable): Promise<readonly StoredPolicy[]> {
  return (await listVisiblePolicies(trx, DEFAULT_TENANT)).filter((policy) => policy.tenantId === undefined);
}
