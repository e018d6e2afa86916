/** A list that comes in pages, as one sequence. */

import { UnexpectedAnswerError } from './errors.ts';

export interface ListPage<T> {
  readonly data: readonly T[];
  readonly has_more: boolean;
  readonly next_cursor: string | null;
}

/**
 * Every row from the first page on; a page is fetched when its first row is asked for.
 * @param fetch gives the page after a cursor; undefined: the first one
 */
export async function* rowsOf<T>(
  fetch: (cursor: string | undefined) => Promise<ListPage<T>>,
): AsyncGenerator<T, void, undefined> {
  let cursor: string | undefined;
  do {
    const page = await fetch(cursor);
    yield* page.data;
    const next = page.has_more ? (page.next_cursor ?? undefined) : undefined;
    if (next !== undefined && next === cursor) throw new UnexpectedAnswerError('The list does not go on.');
    cursor = next;
  } while (cursor !== undefined);
}
