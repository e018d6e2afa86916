/**
 * Lists of tenants with their filters: by id, or by a number or near a limit, which read all tenants. Only platform
 * administrators create tenants.
 *
 * A search (`q`) by id first reads the next tenants in the order of the list, because a text that many tenants have fills
 * a page among few tenants. If they do not fill the page, the search reads the index of lexemes. Both ways return the
 * same tenants.
 */

import { present } from '../../domain/objects.ts';
import type { Page } from '../../store/paging.ts';
import { countUpTo, type NamedQuery, runNamedQuery } from '../../store/prepared.ts';
import type { Queryable } from '../../store/queryable.ts';
import { conditionAfter, type Sorting, sortOrder, sortPosition } from '../../store/sorting.ts';
import { DENIALS } from '../usage/limit-queries.ts';
import type { TenantOrder, TenantRow } from './entity.ts';
import { COLUMNS } from './queries.ts';

export interface TenantFilter {
  readonly status?: TenantRow['status'];
  /** Any part of name or id, in any case. */
  readonly q?: string;
}

const ORDER = 'id collate "C"';

/** In the words of the index. */
const TEXT = "lower(id || E'\\n' || name)";
const HAS_TEXT = `position((select lower(cast(:q as text))) in ${TEXT}) > 0`;

/** Tenants that a search reads in the order of the list before it reads the index of lexemes. */
const SCANNED_TENANTS = 5000;

/** Returns one page of tenants, by id: for platform administrators. */
export async function listTenants(q: Queryable, filter: TenantFilter, page: Page): Promise<readonly TenantRow[]> {
  if (filter.q !== undefined) return search(q, filter, page);
  return await runNamedQuery<TenantRow>(q, tenantsInOrder(filter, page));
}

export async function countTenants(q: Queryable, filter: TenantFilter, most: number): Promise<number> {
  const every: Page = { after: undefined, take: most };
  return countUpTo(q, filter.q === undefined ? tenantsInOrder(filter, every) : tenantsByText(filter, every), most);
}

async function search(q: Queryable, filter: TenantFilter, page: Page): Promise<readonly TenantRow[]> {
  const scanned = await scanNext(q, filter, page);
  if (scanned.complete) return scanned.tenants;
  const { sql, bindings } = tenantsByText(filter, page);
  const found = `with found as materialized (${sql}) select * from found order by ${ORDER} limit :take`;
  return await runNamedQuery<TenantRow>(q, { sql: found, bindings });
}

/** A statement that gives the tenants of a page, in order, for a filter without `q`. */
export function tenantsInOrder({ status }: TenantFilter, page: Page): NamedQuery {
  const filter = present({ status });
  const conditions = ['deleted_at is null', ...conditionsOf(filter, page)].join(' and ');
  const sql = `select ${COLUMNS.join(', ')} from tenants where ${conditions} order by ${ORDER} limit :take`;
  return { sql, bindings: bindingsOf(filter, page) };
}

interface Scan {
  readonly tenants: readonly TenantRow[];
  /** The page is full, or there are no more tenants. */
  readonly complete: boolean;
}

async function scanNext(q: Queryable, filter: TenantFilter, page: Page): Promise<Scan> {
  // One statement, so that no tenant is deleted between being found and being read.
  const next = tenantsInOrder(filter, { ...page, take: SCANNED_TENANTS });
  const sql = `with next as materialized (${next.sql})
    select found.*, scanned.rows < :take as at_end
    from (select count(*) as rows from next) scanned
    left join lateral (select * from next where ${HAS_TEXT} order by ${ORDER} limit :pageSize) found on true
    order by found.${ORDER}`;
  const bindings = { ...bindingsOf(filter, page), ...next.bindings, pageSize: page.take };
  const rows = await runNamedQuery<Partial<TenantRow> & { readonly at_end: boolean }>(q, { sql, bindings });
  const tenants = rows.filter(isTenant);
  return { tenants, complete: tenants.length === page.take || rows[0]?.at_end === true };
}

function isTenant<R extends Partial<TenantRow>>(row: R): row is R & TenantRow {
  return typeof row.id === 'string';
}

/**
 * A statement that gives the tenants of a search, in no order. The conditions that no index of text has are hidden from
 * the planner, which would otherwise walk through all tenants for them.
 */
export function tenantsByText(filter: TenantFilter, page: Page): NamedQuery {
  const others = [...conditionsOf(filter, page), HAS_TEXT].map((condition) => `(${condition}) is true`);
  const sql = `select ${COLUMNS.join(', ')} from tenants where deleted_at is null
      and user_lexemes('', '', '{}', ${TEXT}) @@ (select user_query(null, null, null, lower(cast(:q as text))))
      and ${others.join(' and ')}`;
  return { sql, bindings: bindingsOf(filter, page) };
}

function conditionsOf({ status }: TenantFilter, page: Page): readonly string[] {
  return [
    ...(page.after === undefined ? [] : [`${ORDER} > :after`]),
    // Part of the text, because the plan depends on it: nearly all tenants are active.
    ...(status === undefined ? [] : [`status = '${status}'`]),
  ];
}

function bindingsOf({ q }: TenantFilter, page: Page): NamedQuery['bindings'] {
  const after = page.after?.[0];
  return { ...present({ q, after }), take: page.take };
}

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
