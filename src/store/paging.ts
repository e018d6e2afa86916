/** What all queries share: which tenant they look in, where a page begins, and how stored text becomes an id again. */

import type { Knex } from 'knex';
import { Fault } from '../domain/errors.ts';
import {
  type KeyId,
  type PolicyName,
  parseId,
  parsePolicyName,
  parseRoleName,
  parseTenantId,
  type RoleName,
  type SessionId,
  type TenantId,
  type UserId,
} from '../domain/ids.ts';

/** Whose rows a list shows. There is no third, unscoped kind: whoever means every tenant says so. */
export type TenantScope = { readonly kind: 'one'; readonly tenant: TenantId } | { readonly kind: 'every' };

/** One page of a list: the rows after a position, in the list's own order. */
export interface Page {
  /** The sort values of the last row of the page before; undefined = from the start. */
  readonly after: readonly string[] | undefined;
  /** How many rows to fetch; callers ask for one more than they show, to know whether there are more. */
  readonly take: number;
  /**
   * Most bytes of the rows, as stored; the first row may pass it. Lists of small rows need not look at it. Default: no
   * bound.
   */
  readonly maxBytes?: number;
}

/** The rows of one page of a list whose rows may be large. */
export interface PageRows<Row> {
  readonly rows: readonly Row[];
  /** True if `take` rows came, or rows were left out because of `maxBytes`. */
  readonly more: boolean;
}

/** A column beside those of the row, for `pageRows`. */
export interface BoundedRow {
  readonly rows_found: number;
}

/** More than any page takes. */
const NO_BOUND_BYTES = Number.MAX_SAFE_INTEGER;

/**
 * Returns SQL for the first of some rows, up to the one with which they take `:maxBytes`. The others are never read
 * from where the store keeps large values.
 * @param rows SQL of at most `take` rows, with a column `octets`: their size as stored
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

/** What a statement of `withinBytes` found. */
export function pageRows<Row extends BoundedRow, T>(
  rows: readonly Row[],
  page: Page,
  read: (row: Row) => T,
): PageRows<T> {
  const found = rows[0]?.rows_found ?? 0;
  return { rows: rows.map(read), more: found === page.take || found > rows.length };
}

/** A condition on `column` with the binding `:tenant` where there is one. */
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
export function within(scope: TenantScope, column = 'tenant_id') {
  return (builder: Knex.QueryBuilder): void => {
    if (scope.kind === 'one') void builder.where(column, scope.tenant);
  };
}

export function scopeBinding(scope: TenantScope): { readonly tenant?: string } {
  return scope.kind === 'one' ? { tenant: scope.tenant } : {};
}

function stored<T>(kind: string, parsed: T | undefined): T {
  if (parsed === undefined) throw new Fault(`a stored ${kind} does not have the form of one`);
  return parsed;
}

export const storedTenant = (text: string): TenantId => stored('tenant id', parseTenantId(text));
export const storedUser = (text: string): UserId => stored('user id', parseId('usr', text));
export const storedSession = (text: string): SessionId => stored('session id', parseId('ses', text));
export const storedKey = (text: string): KeyId => stored('key id', parseId('key', text));
export const storedRole = (text: string): RoleName => stored('role name', parseRoleName(text));
export const storedPolicy = (text: string): PolicyName => stored('policy name', parsePolicyName(text));
