import { notifyManager, QueryClient } from '@tanstack/react-query';
import { ConnectionError, ProblemError } from '../../../client/index.ts';

// A pressed button knows that its request is under way before the next press. The default leaves a moment for two requests.
notifyManager.setScheduler(queueMicrotask);

const FRESH_MS = 5_000;
const FIRST_AGAIN_MS = 2_000;
const MAX_AGAIN_MS = 30_000;

/** Reports whether a failed read passes by itself, so that the page reads again. */
export function isPassing(error: unknown): boolean {
  return error instanceof ConnectionError || (error instanceof ProblemError && [502, 503, 504].includes(error.status));
}

/**
 * The cache of answers. The client itself tries again what is worth trying again, so a refusal is shown at once. While a
 * screen shows a failure that passes by itself, it reads again, at first soon and then twice a minute.
 */
export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: FRESH_MS,
      retry: false,
      refetchInterval: ({ state }) =>
        state.status === 'error' && isPassing(state.error)
          ? Math.min(MAX_AGAIN_MS, FIRST_AGAIN_MS * 2 ** (state.errorUpdateCount - 1))
          : false,
    },
  },
});

/**
 * For `placeholderData` of a search whose key ends with the typed text: what the search before found stays until the
 * next result is there. An option that is being pressed is then not taken away.
 */
export function whileSearching(key: readonly unknown[]) {
  const isSameSearch = (other: readonly unknown[]): boolean =>
    other.length === key.length && other.slice(0, -1).every((part, i) => part === key[i]);
  return <T>(before: T | undefined, query: { readonly queryKey: readonly unknown[] } | undefined): T | undefined =>
    query !== undefined && isSameSearch(query.queryKey) ? before : undefined;
}
