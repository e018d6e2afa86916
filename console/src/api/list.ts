/** A list of the API, a page at a time. */

import { keepPreviousData, useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { type ListPath, type Operation, ProblemError, type Row } from '../../../client/index.ts';
import { isName } from './names.ts';

/** The state of a list's screen. */
export type List<T> =
  | { readonly kind: 'loading' }
  | { readonly kind: 'failed'; readonly error: unknown; readonly retry: () => void }
  | {
      readonly kind: 'loaded';
      readonly rows: readonly T[];
      /** Loads the next page; undefined: there is none. */
      readonly more: (() => void) | undefined;
      readonly isLoadingMore: boolean;
      /** The rows of the whole list; undefined: the server did not count them. */
      readonly total?: Total | undefined;
    };

/** A number of rows, or a number that the rows exceed. */
export interface Total {
  readonly rows: number;
  readonly exceeds: boolean;
}

interface Page<T> {
  readonly data: readonly T[];
  readonly next_cursor: string | null;
  /** A number, if the request asked for it. */
  readonly total?: unknown;
  readonly total_exceeds?: number;
}

export type ListQuery<P extends ListPath> =
  Operation<'GET', P> extends { readonly query?: infer Q } ? Exclude<Q, undefined> : never;

/**
 * Loads the first page, and each further page on request.
 *
 * @param load fetches one page by its cursor; the first page has none
 * @param key the inputs of the list, the tenant first
 */
export function useList<P extends ListPath>(
  key: readonly unknown[],
  load: (cursor: string | undefined, signal: AbortSignal) => Promise<Page<Row<P>>>,
): List<Row<P>> {
  const query = useInfiniteQuery({
    queryKey: key,
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }) => load(pageParam, signal),
    getNextPageParam: (page) => page.next_cursor ?? undefined,
    placeholderData: keepPreviousData,
  });
  if (query.data === undefined) {
    return query.isError
      ? { kind: 'failed', error: query.error, retry: () => void query.refetch() }
      : { kind: 'loading' };
  }
  return {
    kind: 'loaded',
    rows: query.data.pages.flatMap((page) => page.data),
    more: query.hasNextPage ? () => void query.fetchNextPage() : undefined,
    isLoadingMore: query.isFetchingNextPage,
    total: totalOf(query.data.pages[0]),
  };
}

/** @param first the first page: only its request asks for the number of rows */
function totalOf(first: Omit<Page<unknown>, 'data'> | undefined): Total | undefined {
  if (typeof first?.total === 'number') return { rows: first.total, exceeds: false };
  return first?.total_exceeds === undefined ? undefined : { rows: first.total_exceeds, exceeds: true };
}

/**
 * Adds the row with exactly the searched name in front of a list, also if it is on a later page.
 *
 * @param key of the row's query
 * @param isChosen whether the filters of the list choose the row
 */
export function useNamedFirst<T extends { readonly name: string }>(
  list: List<T>,
  key: readonly unknown[],
  name: string,
  read: (signal: AbortSignal) => Promise<T>,
  isChosen: (row: T) => boolean,
): List<T> {
  const named = useQuery({
    queryKey: [...key, 'named', name],
    queryFn: async ({ signal }) => {
      try {
        return await read(signal);
      } catch (error) {
        if (error instanceof ProblemError && error.status === 404) return null;
        throw error;
      }
    },
    enabled: isName(name),
    retry: false,
  });
  const first = named.data;
  if (list.kind !== 'loaded' || first === undefined || first === null || !isChosen(first)) return list;
  return { ...list, rows: [first, ...list.rows.filter((row) => row.name !== first.name)] };
}
