import { QueryClient } from '@tanstack/react-query';
import { ProblemError } from '../../../client/index.ts';

const FRESH_MS = 5_000;
const MAX_RETRIES = 1;

/** The cache of answers. The client itself tries again what is worth trying again, so a refusal is shown at once. */
export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: FRESH_MS,
      retry: (failures, error) => !(error instanceof ProblemError) && failures < MAX_RETRIES,
    },
  },
});
