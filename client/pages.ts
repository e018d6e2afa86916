/** All pages of a list as one sequence. */

import { UnexpectedAnswerError } from './errors.ts';

export interface ListPage<T> {
  readonly data: readonly T[];
  readonly has_more: boolean;
  readonly next_cursor: string | null;
}

/**
 * Returns the rows of all pages. It fetches a page when its first row is read.
 * @param fetch resolves with the page after a cursor; undefined: the first one
 */
export async function* rowsOf<T>(
  fetch: (cursor: string | undefined) => Promise<ListPage<T>>,
): AsyncGenerator<T, void, undefined> {
  let cursor: string | undefined;
  do {
    const page = await fetch(cursor);
    yield* page.data;
    const next = page.has_more ? (page.next_cursor ?? undefined) : undefined;
    if (next !== undefined && next === cursor) throw new UnexpectedAnswerError('The list returns the same page again.');
    cursor = next;
  } while (cursor !== undefined);
}
