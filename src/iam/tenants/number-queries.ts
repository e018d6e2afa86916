/** Lists of tenants by a number, or near a limit. They read all tenants, which only platform administrators create. */

import type { Page } from '../../store/paging.ts';
import { countUpTo, runNamedQuery } from '../../store/prepared.ts';
import type { Queryable } from '../../store/queryable.ts';
import { conditionAfter, type Sorting, sortOrder, sortPosition } from '../../store/sorting.ts';
import { DENIALS } from '../usage/limit-queries.ts';
import type { TenantOrder, TenantRow } from './entity.ts';
import type { TenantFilter } from './list-queries.ts';
import { COLUMNS } from './queries.ts';

export interface NumberFilter extends TenantFilter {
  /** Only tenants that have spent most of the month's tokens, or that will have spent them before the reset. */
  readonly near_limit?: true;
}

/** The current months of the time zones that tenants have. */
export interface Months {
  /** By time zone. The empty name is the month of the tenants without one. */
  readonly byZone: Readonly<Record<string, Month>>;
}

export interface Month {
  /** `2026-11` */
  readonly period: string;
  /** The share of the month that has passed; 1 while it is too early for a pace. */
  readonly share: number;
}

/** A tenant and its position in the list. */
export interface ListedTenant {
  readonly tenant: TenantRow;
  readonly position: readonly string[];
}

/** Returns the time zones of all tenants; empty for the tenants without one. */
export async function zonesOfTenants(q: Queryable): Promise<readonly string[]> {
  const { rows } = await q.raw<{ rows: { zone: string }[] }>(
    `select distinct coalesce(settings->>'timezone', '') as zone from tenants where deleted_at is null`,
  );
  return rows.map(({ zone }) => zone);
}

/** Reports whether a list needs numbers of all tenants. */
export function isByNumber(filter: NumberFilter, { member, descending }: TenantOrder): boolean {
  return member !== 'id' || descending || filter.near_limit === true;
}

const ORDER = 'id collate "C"';

/** From this share of the month's tokens on, a tenant is near its limit. */
const NEAR = 0.8;

const QUOTA = `cast(t.quotas->>'monthly_tokens' as numeric)`;
const SPENT = 'coalesce(b.spent, 0)';
const VALUES: Readonly<Record<TenantOrder['member'], string>> = {
  id: 't.id collate "C"',
  tokens: SPENT,
  requests: `coalesce((select sum(u.requests) from usage_by_model u
    where u.tenant_id = t.id and u.day >= cast((m.month->>'period') || '-01' as date)), 0)`,
  denied: 'coalesce(d.denied, 0)',
  share: `round(${SPENT} / nullif(${QUOTA}, 0), 6)`,
};

/** Returns one page of tenants. */
export async function listTenantsByNumber(
  q: Queryable,
  filter: NumberFilter,
  order: TenantOrder,
  { byZone }: Months,
  page: Page,
): Promise<readonly ListedTenant[]> {
  const sorting: Sorting = { value: 'value', kind: 'number', descending: order.descending, id: 'id collate "C"' };
  const byId = order.member === 'id';
  const direction = order.descending ? 'desc' : 'asc';
  const [afterId] = page.after ?? [];
  const beyond = !byId
    ? conditionAfter(sorting, page.after)
    : afterId === undefined
      ? { sql: 'true', bindings: {} }
      : { sql: `${ORDER} ${order.descending ? '<' : '>'} :afterId`, bindings: { afterId } };
  const rows = await runNamedQuery<TenantRow & { readonly position: readonly string[] }>(q, {
    sql: `with listed as (${withNumbers(filter, order)})
      select ${COLUMNS.join(', ')}, ${byId ? 'array[id]' : sortPosition(sorting)} as position from listed
      where ${beyond.sql} order by ${byId ? `${ORDER} ${direction}` : sortOrder(sorting)} limit :take`,
    bindings: {
      ...(filter.q === undefined ? {} : { q: filter.q }),
      ...beyond.bindings,
      months: JSON.stringify(byZone),
      take: page.take,
    },
  });
  return rows.map(({ position, ...tenant }) => ({ tenant, position }));
}

/** SQL for all tenants of a filter, with the value of the order. */
function withNumbers({ q, status, near_limit: isNear }: NumberFilter, { member }: TenantOrder): string {
  const conditions = [
    't.deleted_at is null',
    ...(status === undefined ? [] : [`t.status = '${status}'`]),
    ...(q === undefined ? [] : [`position((select lower(cast(:q as text))) in lower(t.id || E'\\n' || t.name)) > 0`]),
    ...(isNear === true
      ? [`${SPENT} >= ${QUOTA} * ${NEAR} or ${SPENT} > ${QUOTA} * cast(m.month->>'share' as numeric)`]
      : []),
  ];
  return `with zones as materialized (select cast(:months as jsonb) as by_zone)
    select t.*, ${VALUES[member]} as value from tenants t
    cross join lateral (
      select coalesce(by_zone->(t.settings->>'timezone'), by_zone->'') as month from zones
    ) m
    left join token_budgets b on b.tenant_id = t.id and b.period = m.month->>'period'
    ${member === 'denied' ? `left join (${DENIALS}) d on d.tenant_id = t.id` : ''}
    where ${conditions.map((condition) => `(${condition})`).join(' and ')}`;
}

/** Counts the tenants near a limit, up to `most`. */
export function countTenantsNear(
  q: Queryable,
  filter: NumberFilter,
  { byZone }: Months,
  most: number,
): Promise<number> {
  const bindings = { ...(filter.q === undefined ? {} : { q: filter.q }), months: JSON.stringify(byZone) };
  return countUpTo(q, { sql: withNumbers(filter, { member: 'id', descending: false }), bindings }, most);
}
