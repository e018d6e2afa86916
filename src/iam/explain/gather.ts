/** One page of what is found by passing over rows of several kinds, one kind after the other, within bounds. */

import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Scanned } from './who-can-queries.ts';

interface Candidate<T> {
  readonly id: string;
  /** Undefined: not to be shown. */
  show(): T | undefined;
}

/** One kind of rows, in the order of their ids. */
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
  /** The section and the id of the last row of the page before; undefined = at the start. */
  readonly after: readonly string[] | undefined;
  readonly limit: number;
  /** Whether enough was done for one page, beside the rows that it passes over. */
  readonly spent: () => boolean;
  /** Returns the bytes that a row adds to the answer, after the rows that it was called for before. */
  readonly bytesOf: (row: T) => number;
  /** Most bytes of one page; its first row may pass it. */
  readonly maxBytes: number;
}

/** Rows that one look-up passes over at most, and that one page does. */
const MAX_CHUNK_ROWS = 1_000;
const MAX_ROWS = 10_000;
/** Candidates that are shown without other requests getting their turn. One may cost as much as all policies of its tenant. */
const SLICE_MS = 5;

export interface Gathered<T> {
  readonly shown: readonly T[];
  /** Where the next page begins; undefined = there is none. It may turn out to be empty. */
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
  // Most pages find what they show in the first rows.
  let chunk = limit + 1;
  let sliceEndsMs = performance.now() + SLICE_MS;
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
        if (performance.now() > sliceEndsMs) {
          await nextTurn();
          sliceEndsMs = performance.now() + SLICE_MS;
        }
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
