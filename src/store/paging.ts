/** Parts of all queries: the tenant scope and pages of lists. */

import type { Knex } from 'knex';
import type { TenantId } from '../domain/ids.ts';
import type { Queryable } from './queryable.ts';

/** The tenants of a list's rows. There is no unscoped kind: a caller that means every tenant must state it. */
export type TenantScope = { readonly kind: 'one'; readonly tenant: TenantId } | { readonly kind: 'every' };

/** One page of a list: the rows after a position, in the list's order. */
export interface Page {
  /** Sort values of the previous page's last row; undefined = from the start. */
  readonly after: readonly string[] | undefined;
  /** Number of rows to read. Callers request one more than they show, to detect a next page. */
  readonly take: number;
  /**
   * Bounds the stored bytes of the rows; the first row may exceed it. Only lists of large rows use it. Default: none.
   */
  readonly maxBytes?: number;
}

/** The rows of one page of a list whose rows may be large. */
export interface PageRows<Row> {
  readonly rows: readonly Row[];
  /** True if there are `take` rows, or if rows are missing because of `maxBytes`. */
  readonly more: boolean;
  /** The last examined row, if a search ended after the last of `rows`: the next page begins after it. */
  readonly end?: Row;
}

/** An additional column of the rows of `withinBytes`. */
export interface BoundedRow {
  readonly rows_found: number;
}

/** More than the size of any page. */
const NO_BOUND_BYTES = Number.MAX_SAFE_INTEGER;

/**
 * Returns SQL for the first rows, up to the one with which they reach `:maxBytes`. PostgreSQL does not read the large
 * values of the other rows.
 * @param rows SQL of at most `take` rows, with their stored size as the column `octets`
 * @param order of the page, by columns of `rows`
 */
export function withinBytes(rows: string, order: string): string {
  return `select * from (
      select found.*, cast(count(*) over () as integer) as rows_found,
        sum(octets) over (order by ${order} rows unbounded preceding) - octets as octets_before
      from (${rows}) found
    ) bounded where octets_before < :maxBytes order by ${order}`;
}

/** The binding of `withinBytes`. */
export function bytesBinding({ maxBytes = NO_BOUND_BYTES }: Page): { readonly maxBytes: number } {
  return { maxBytes };
}

/**
 * Reads a page of rows within its bytes.
 * @param sql the rows and their order, as for `withinBytes`. They may use the binding `:take`
 */
export async function pageWithinBytes<Row>(
  q: Queryable,
  sql: { readonly rows: string; readonly order: string },
  bindings: Readonly<Record<string, Knex.RawBinding>>,
  page: Page,
): Promise<PageRows<Row>> {
  const { take } = page;
  const statement = withinBytes(sql.rows, sql.order);
  const { rows } = await q.raw<{ rows: (Row & BoundedRow)[] }>(statement, { ...bindings, ...bytesBinding(page), take });
  const found = rows[0]?.rows_found ?? 0;
  return { rows, more: found === take || found > rows.length };
}

/** Returns a condition on `column`, with the binding `:tenant` for a scope of one tenant. */
export function scopeCondition(scope: TenantScope, column: string): string {
  switch (scope.kind) {
    case 'one':
      return `${column} = :tenant`;
    case 'every':
      return 'true';
    default:
      return scope satisfies never;
  }
}

/** Restricts a statement of the query builder to the rows of the scope, for `modify`. */
export function within(scope: TenantScope) {
  return (builder: Knex.QueryBuilder): void => {
    if (scope.kind === 'one') void builder.where('tenant_id', scope.tenant);
  };
}

export function scopeBinding(scope: TenantScope): { readonly tenant?: string } {
  return scope.kind === 'one' ? { tenant: scope.tenant } : {};
}
