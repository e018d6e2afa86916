/** A list of the API, a page at a time. */

import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query';
import type { ListPath, Operation, Row } from '../../../client/index.ts';

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
    };

interface Page<T> {
  readonly data: readonly T[];
  readonly next_cursor: string | null;
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
  };
}
