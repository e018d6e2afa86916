/** Collects one page from several scans, one after the other, within bounds. */

import { pauses } from '../../concurrency/pauses.ts';
import type { Scanned } from './who-can-queries.ts';

interface Candidate<T> {
  readonly id: string;
  /** Returns undefined if the page leaves the candidate out. */
  show(): T | undefined;
}

/** One scan, in the order of ids. */
export interface Section<T> {
  readonly name: string;
  scan(after: string, take: number): Promise<Scanned<Candidate<T>>>;
}

export function section<Row extends { readonly id: string }, T>(
  name: string,
  show: (row: Row) => T | undefined,
  scan: (after: string, take: number) => Promise<Scanned<Row>>,
): Section<T> {
  return {
    name,
    scan: async (after, take) => {
      const { candidates, ...rest } = await scan(after, take);
      return { ...rest, candidates: candidates.map((row) => ({ id: row.id, show: () => show(row) })) };
    },
  };
}

export interface PageOf<T> {
  /** The section and the id of the last row of the previous page; undefined: the first page. */
  readonly after: readonly string[] | undefined;
  readonly limit: number;
  /** Reports whether the work for one page is used up, in addition to the bound on rows. */
  readonly spent: () => boolean;
  /** Returns the bytes that a row adds to the response after the previous rows. */
  readonly bytesOf: (row: T) => number;
  /** The bound on the bytes of a page. Its first row may exceed it. */
  readonly maxBytes: number;
}

/** The number of rows that one statement reads, and that one page reads. */
const MAX_CHUNK_ROWS = 1_000;
const MAX_ROWS = 10_000;

export interface Gathered<T> {
  readonly shown: readonly T[];
  /** The position of the next page, which may be empty; undefined: this is the last page. */
  readonly next: readonly string[] | undefined;
}

export async function gather<T>(
  sections: readonly Section<T>[],
  { after, limit, spent, bytesOf, maxBytes }: PageOf<T>,
): Promise<Gathered<T>> {
  const [from = sections[0]?.name, id = ''] = after ?? [];
  const start = sections.findIndex((one) => one.name === from);
  const shown: T[] = [];
  let rows = 0;
  let bytes = 0;
  // The first rows fill most pages.
  let chunk = limit + 1;
  // One candidate may cost as much as all policies of its tenant.
  const pause = pauses();
  for (const { name, scan } of start < 0 ? [] : sections.slice(start)) {
    let last = name === from ? id : '';
    for (let exhausted = false; !exhausted; ) {
      if (rows >= MAX_ROWS) return { shown, next: [name, last] };
      const scanned = await scan(last, Math.min(chunk, MAX_ROWS - rows));
      rows += scanned.passed;
      chunk = Math.min(2 * chunk, MAX_CHUNK_ROWS);
      exhausted = scanned.exhausted;
      for (const candidate of scanned.candidates) {
        if (spent()) return { shown, next: [name, last] };
        await pause();
        const one = candidate.show();
        if (one !== undefined) {
          if (shown.length === limit) return { shown, next: [name, last] };
          bytes += bytesOf(one);
          if (bytes > maxBytes && shown.length > 0) return { shown, next: [name, last] };
          shown.push(one);
        }
        last = candidate.id;
      }
      last = scanned.lastId ?? last;
    }
  }
  return { shown, next: undefined };
}
