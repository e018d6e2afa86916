import { QueryClient } from '@tanstack/react-query';
import { ConnectionError, ProblemError } from '../../../client/index.ts';

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
