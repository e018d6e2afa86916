/**
 * Finds the ids of one page of a sorted and filtered list of a large table.
 *
 * A filter that many rows match fills a page among the first rows of the order, so the search first reads a bounded
 * number of rows in that order, by an index of it. If they do not fill the page, or there is no such index, the search
 * reads all rows that match by an index of the filter, and sorts them.
 */

import type { Page } from './paging.ts';
import { type NamedQuery, runNamedQuery } from './prepared.ts';
import type { Queryable } from './queryable.ts';
import { conditionAfter, type Sorting, sortOrder, sortPosition } from './sorting.ts';

export interface SortedRow<Id extends string> {
  readonly id: Id;
  readonly position: readonly string[];
}

/** Rows in the order of an index. */
export interface OrderedRows {
  /** SQL of the value; null = the rows have none, and are in the order of their ids. */
  readonly value: string | null;
  readonly id: string;
  /** The table, and the condition on its rows. */
  readonly from: string;
  readonly where: string;
}

export interface SortedSearch {
  readonly kind: Sorting['kind'];
  readonly descending: boolean;
  /** SQL of the value of a row of `table`, whose id is `id`. */
  readonly value: string;
  readonly id: string;
  readonly table: string;
  /** The rows by indexes of the order: first those with a value, then those without one. Empty: no index has it. */
  readonly ordered: readonly OrderedRows[];
  /** The filter, on a row of `table`; undefined = every row matches. */
  readonly filter: string | undefined;
  /** The condition on the rows that match, written so that PostgreSQL finds them by an index of the filter. */
  readonly matching: string;
  readonly bindings: NamedQuery['bindings'];
}

/**
 * @param scans the rows that the search reads in order before it reads all that match
 * @returns at most `page.take` rows
 */
export async function findSortedPage<Id extends string>(
  q: Queryable,
  search: SortedSearch,
  page: Page,
  scans: readonly number[],
): Promise<readonly SortedRow<Id>[]> {
  if (search.ordered.length > 0) {
    for (const take of search.filter === undefined ? [page.take] : scans) {
      const found = await scanned<Id>(q, search, page, take);
      if (found !== undefined) return found;
    }
  }
  return runNamedQuery<SortedRow<Id>>(q, matchingPage(search, page));
}

/** Returns undefined if the rows in order neither fill the page nor end. */
async function scanned<Id extends string>(
  q: Queryable,
  search: SortedSearch,
  page: Page,
  take: number,
): Promise<readonly SortedRow<Id>[] | undefined> {
  const found: SortedRow<Id>[] = [];
  const afterRowWithout = search.ordered.length > 1 && page.after?.length === 1;
  for (const rows of search.ordered) {
    const hasValues = rows.value !== null;
    if (hasValues && afterRowWithout) continue;
    const rest = { after: hasValues || afterRowWithout ? page.after : undefined, take: page.take - found.length };
    const answer = await runNamedQuery<Scanned<Id>>(q, scanOf(search, rows, rest, take));
    found.push(...answer.flatMap(({ id, position }) => (id === null || position === null ? [] : [{ id, position }])));
    if (found.length === page.take) return found;
    if (answer[0]?.at_end !== true) return undefined;
  }
  return found;
}

interface Scanned<Id extends string> {
  /** Null if the scan found no row. */
  readonly id: Id | null;
  readonly position: readonly string[] | null;
  /** There are no more rows in the order. */
  readonly at_end: boolean;
}

/** Returns a query for a page among the first rows in order. It has one row without an id if it finds none. */
export function scanOf(search: SortedSearch, rows: OrderedRows, page: Page, take: number): NamedQuery {
  const { kind, descending, bindings } = search;
  const sorting = { value: rows.value ?? '', kind, descending, id: rows.id, required: true };
  const isWithout = rows.value === null;
  const after = isWithout ? idAfter(rows.id, descending, page.after) : conditionAfter(sorting, page.after);
  const position = isWithout ? `array[${rows.id}]` : sortPosition(sorting);
  const order = isWithout ? `${rows.id} ${descending ? 'desc' : 'asc'}` : sortOrder(sorting);
  const next = `select ${rows.id} as id, ${position} as position from ${rows.from}
    where ${rows.where} and ${after.sql} order by ${order} limit :scanned`;
  const sql = `with next as materialized (${next}), page as materialized (${pageOf(search)})
    select page.id, page.position, ended.at_end
    from (select count(*) < :scanned as at_end from next) ended left join page on true order by page.place`;
  return { sql, bindings: { ...bindings, ...after.bindings, scanned: take, pageSize: page.take } };
}

/** The first rows of `next` that the filter matches. */
function pageOf({ filter, table, id, value, kind, descending }: SortedSearch): string {
  if (filter === undefined) return 'select id, position, row_number() over () as place from next limit :pageSize';
  const sorting = { value, kind, descending, id };
  // The ids as an array, so that PostgreSQL looks them up, instead of joining the whole table.
  return `select ${id} as id, ${sortPosition(sorting)} as position, row_number() over (order by ${sortOrder(sorting)}) as place
    from ${table} where ${id} = any(array(select id from next)) and ${filter} order by ${sortOrder(sorting)} limit :pageSize`;
}

function idAfter(id: string, descending: boolean, after: readonly string[] | undefined): NamedQuery {
  if (after === undefined) return { sql: 'true', bindings: {} };
  return { sql: `${id} ${descending ? '<' : '>'} :afterId`, bindings: { afterId: after.at(-1) ?? '' } };
}

/** Returns a query for the page of all rows that match. */
export function matchingPage(search: SortedSearch, page: Page): NamedQuery {
  const { kind, descending, value, id, table, matching, bindings } = search;
  const sorting = { value: 'found.value', kind, descending, id: 'found.id' };
  const after = conditionAfter(sorting, page.after);
  const sql = `with found as materialized (select ${id} as id, ${value} as value from ${table} where ${matching})
    select found.id, ${sortPosition(sorting)} as position from found where ${after.sql}
    order by ${sortOrder(sorting)} limit :pageSize`;
  return { sql, bindings: { ...bindings, ...after.bindings, pageSize: page.take } };
}
