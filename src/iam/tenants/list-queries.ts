/**
 * Lists of tenants, by id, with their filters.
 *
 * A search (`q`) first reads the next tenants in the order of the list, because a text that many tenants have fills a
 * page among few tenants. If they do not fill the page, the search reads the index of lexemes. Both ways return the
 * same tenants.
 */

import { present } from '../../domain/objects.ts';
import type { Page } from '../../store/paging.ts';
import { countUpTo, type NamedQuery, runNamedQuery } from '../../store/prepared.ts';
import type { Queryable } from '../../store/queryable.ts';
import type { TenantRow } from './entity.ts';
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

/** Counts the tenants of a list, up to `most`. */
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
