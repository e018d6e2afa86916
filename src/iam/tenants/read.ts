/** Reads tenants. Platform administrators may read all tenants, other callers their own. */

import { allModelRates } from '../../decision/model-rates.ts';
import { isPlatformAdmin } from '../../decision/tenant.ts';
import { parseTenantId, type TenantId } from '../../domain/ids.ts';
import type { Page } from '../../store/paging.ts';
import type { Queryable } from '../../store/queryable.ts';
import { authorize } from '../caller/authorize.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { notFound, orNotFound } from '../caller/refusals.ts';
import { filterOf, type List, type ListQuery, paged } from '../list/list.ts';
import { readActivityOf, readLimitsOf } from '../usage/limit-queries.ts';
import type { MeteringParts } from '../usage/parts.ts';
import { momentOf } from '../usage/period.ts';
import { limitsOf, passedOf } from '../usage/tenant-limits.ts';
import {
  type TenantNumbers,
  type TenantOrder,
  type TenantResource,
  type TenantRow,
  tenantOrders,
  tenantResource,
} from './entity.ts';
import {
  countTenants,
  countTenantsNear,
  isByNumber,
  type ListedTenant,
  listTenants,
  listTenantsByNumber,
  type Month,
  type Months,
  type NumberFilter,
  zonesOfTenants,
} from './list-queries.ts';
import { findTenant } from './queries.ts';

interface TenantListQuery extends ListQuery, NumberFilter {
  readonly sort?: string;
  readonly include?: 'limits';
}

export async function listTenantsPage(
  parts: AdminParts & MeteringParts,
  caller: Caller,
  query: TenantListQuery,
): Promise<List<TenantResource & TenantNumbers>> {
  const { knex } = parts.db;
  const { sort: _sort, include, ...filter } = filterOf(query);
  const ordered = tenantOrders.inOrder(query);
  const order = tenantOrders.orderOf(ordered);
  const byNumber = isByNumber(filter, order) ? await numbersOfAll(knex, caller.nowMs, filter, order) : undefined;
  const page = await paged<ListedTenant, TenantRow>(
    caller,
    'tenants',
    ordered,
    byNumber?.list ?? (async (page) => (await listTenants(knex, filter, page)).map(byId)),
    ({ position }) => position,
    ({ tenant }) => tenant,
    filter.near_limit === true ? byNumber?.count : (most) => countTenants(knex, filter, most),
  );
  const numbersOf = include === 'limits' ? await readNumbers(parts, caller, page.data) : () => ({});
  return { ...page, data: page.data.map((tenant) => ({ ...tenantResource(tenant), ...numbersOf(tenant) })) };
}

function byId(tenant: TenantRow): ListedTenant {
  return { tenant, position: [tenant.id] };
}

/** The list and the count of tenants by a number, or near a limit. */
async function numbersOfAll(q: Queryable, nowMs: number, filter: NumberFilter, order: TenantOrder) {
  const months = monthsOf(await zonesOfTenants(q), nowMs);
  return {
    list: (page: Page) => listTenantsByNumber(q, filter, order, months, page),
    count: (most: number) => countTenantsNear(q, filter, months, most),
  };
}

function monthsOf(zones: readonly string[], nowMs: number): Months {
  const monthOf = (zone: string): Month => {
    const month = momentOf(zone === '' ? undefined : zone, nowMs);
    return { period: month.period, share: passedOf(month, nowMs)?.share ?? 1 };
  };
  return { byZone: Object.fromEntries(['', ...zones].map((zone) => [zone, monthOf(zone)])) };
}

/** Reads the limits and the activity of all tenants of a page. */
async function readNumbers(
  { db, metering }: AdminParts & MeteringParts,
  { nowMs }: Caller,
  tenants: readonly TenantRow[],
): Promise<(tenant: TenantRow) => TenantNumbers> {
  const months = new Map(tenants.map(({ id, settings }) => [id, momentOf(settings.timezone, nowMs)]));
  const asked = tenants.map((tenant) => {
    const { period } = momentOf(tenant.settings.timezone, nowMs);
    return { tenant: tenant.id, period, rates: allModelRates(tenant) };
  });
  const [limits, activities] = await Promise.all([
    readLimitsOf(db.knex, asked, metering.windowMs),
    readActivityOf(db.knex, asked),
  ]);
  return (tenant) => {
    const [month, state, activity] = [months.get(tenant.id), limits.get(tenant.id), activities.get(tenant.id)];
    if (month === undefined || state === undefined || activity === undefined) return {};
    const { requests, denied } = activity;
    return { limits: limitsOf(tenant, state, month, nowMs), activity: { requests, denied } };
  };
}

/** @throws Refusal `not_found`; `insufficient_permission` or `denied_by_policy` without the permission */
export async function getTenant(parts: AdminParts, caller: Caller, text: string): Promise<TenantResource> {
  authorize(caller, isPlatformAdmin(caller.principal) ? 'admin:tenants' : 'admin:users');
  const id = tenantIdOf(text);
  if (!isPlatformAdmin(caller.principal) && id !== caller.principal.tenantId) throw notFound('tenant');
  const tenant = orNotFound(await findTenant(parts.db.knex, id), 'tenant');
  return tenantResource(tenant);
}

/** @throws Refusal `not_found` for any text that cannot be an id */
export function tenantIdOf(text: string): TenantId {
  return orNotFound(parseTenantId(text), 'tenant');
}
