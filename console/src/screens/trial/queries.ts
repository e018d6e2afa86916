/** The numbers of a trial, and its requests. */

import { useQuery } from '@tanstack/react-query';
import type { RecentDecision } from '../../../../client/index.ts';
import { serverNow } from '../../api/clock.ts';
import { type List, useList } from '../../api/list.ts';
import { useTenant } from '../../api/session.ts';
import type { TrialSearch } from './search.ts';

const FRESH_MS = 30_000;
const HOUR_MS = 3_600_000;
const PAGE = 50;

/** Returns the start of the span; undefined: all that is recorded. */
function startOf(span: TrialSearch['span']): string | undefined {
  return span === undefined ? undefined : new Date(serverNow() - HOUR_MS).toISOString();
}

export function useTrial(span: TrialSearch['span']) {
  const { id, client } = useTenant();
  return useQuery({
    queryKey: [id, 'decisions', 'trial', span],
    queryFn: ({ signal }) =>
      client.request('GET', '/v1/iam/decisions/trial', { query: { from: startOf(span) }, signal }),
    refetchInterval: FRESH_MS,
  });
}

const QUERY_OF_KIND = {
  differs: { differs: true },
  here: { differs: true, outcome: 'deny' },
  there: { differs: true, outcome: 'allow' },
  all: {},
} as const;

export function useRequests({ span, kind = 'differs', code, principal, route }: TrialSearch): List<RecentDecision> {
  const { id, client } = useTenant();
  const filter = { ...QUERY_OF_KIND[kind], code, principal, route };
  return useList<'/v1/iam/decisions/recent'>([id, 'decisions', 'shadow', span, filter], (cursor, signal) => {
    const query = { ...filter, shadow: true, from: startOf(span), include: 'names', limit: PAGE, cursor } as const;
    return client.request('GET', '/v1/iam/decisions/recent', { query, signal });
  });
}

/** The request of an address, which the list need not have. */
export function useRequest(requestId: string, isListed: boolean) {
  const { id, client } = useTenant();
  return useQuery({
    queryKey: [id, 'decisions', 'recorded', requestId],
    queryFn: ({ signal }) =>
      client.request('GET', '/v1/iam/decisions/recent/{request_id}', { path: { request_id: requestId }, signal }),
    enabled: !isListed,
    retry: false,
  });
}
