/** Pages of the rows that a condition accepts which the database cannot evaluate. */

import type { Page, PageRows } from '../../store/paging.ts';
import { jsonBytes, MAX_PAGE_BYTES } from './list.ts';

const BATCH = 200;
/** Rows that the server examines for one page, by default. */
const MAX_EXAMINED = 10_000;

export interface Matching<Row> {
  readonly fetch: (page: Page) => Promise<PageRows<Row>>;
  readonly matches: (row: Row) => boolean;
  readonly position: (row: Row) => readonly string[];
}

/**
 * Fetches the accepted rows of a page. If it has examined `mostExamined` rows, the page may be short, and the next page
 * begins after the last examined row.
 */
export async function fetchMatching<Row>(
  list: Matching<Row>,
  page: Page,
  mostExamined = MAX_EXAMINED,
): Promise<PageRows<Row>> {
  const found: Row[] = [];
  let bytes = 0;
  let examined = 0;
  for await (const { rows, more } of batches(list, page)) {
    for (const row of rows) {
      if (!list.matches(row)) continue;
      found.push(row);
      bytes += jsonBytes(row);
      if (found.length === page.take || bytes > (page.maxBytes ?? Number.POSITIVE_INFINITY)) {
        return { rows: found, more: true };
      }
    }
    examined += rows.length;
    const end = rows.at(-1);
    if (more && end !== undefined && examined >= mostExamined) return { rows: found, more, end };
  }
  return { rows: found, more: false };
}

/**
 * Counts the accepted rows, up to `most`.
 * @returns undefined if more than `mostExamined` rows would have to be examined
 */
export async function countMatching<Row>(
  list: Matching<Row>,
  most: number,
  mostExamined = MAX_EXAMINED,
): Promise<number | undefined> {
  let count = 0;
  let examined = 0;
  for await (const { rows, more } of batches(list, { after: undefined, maxBytes: MAX_PAGE_BYTES })) {
    count += rows.filter(list.matches).length;
    if (count >= most) return most;
    examined += rows.length;
    if (more && examined >= mostExamined) return undefined;
  }
  return count;
}

async function* batches<Row>(
  { fetch, position }: Matching<Row>,
  page: Pick<Page, 'after' | 'maxBytes'>,
): AsyncGenerator<PageRows<Row>> {
  let { after } = page;
  for (;;) {
    const batch = await fetch({ ...page, after, take: BATCH });
    yield batch;
    const last = batch.rows.at(-1);
    if (!batch.more || last === undefined) return;
    after = position(last);
  }
}
