/** The effect of a change of policies and roles on the tenant's requests, computed by the server. */

import { useQuery } from '@tanstack/react-query';
import type { Difference, DifferenceRequest } from '../../../../client/index.ts';
import { useDenied, useTenant } from '../../api/session.ts';
import { useLate } from '../../ui/use-late.ts';

export type DifferenceState =
  | { readonly kind: 'nothing' }
  /** The draft cannot be compared, or the caller may not compare it. */
  | { readonly kind: 'fault'; readonly fault: string }
  | { readonly kind: 'denied'; readonly reason: string }
  | { readonly kind: 'computing' }
  | { readonly kind: 'failed'; readonly error: unknown; readonly retry: () => void }
  | { readonly kind: 'known'; readonly difference: Difference };

/**
 * Compares the rules with and without the change, once it has not changed for a moment. A comparison that is under way
 * is canceled when the change changes, so that there is at most one.
 *
 * @param change undefined: nothing changes
 * @param fault why the draft cannot be compared; undefined: it can
 */
export function useDifference(change: DifferenceRequest | undefined, fault?: string): DifferenceState {
  const { id: tenant, client } = useTenant();
  const reason = useDenied('admin:policies');
  const wanted = change === undefined || fault !== undefined ? undefined : JSON.stringify(change);
  const settled = useLate(wanted);
  const query = useQuery({
    queryKey: [tenant, 'difference', settled],
    queryFn: ({ signal }) =>
      client.request('POST', '/v1/iam/explain/difference', { body: JSON.parse(settled ?? '{}'), signal }),
    enabled: settled !== undefined && settled === wanted && reason === undefined,
    retry: false,
    refetchOnWindowFocus: false,
  });
  if (change === undefined) return { kind: 'nothing' };
  if (reason !== undefined) return { kind: 'denied', reason };
  if (fault !== undefined) return { kind: 'fault', fault };
  if (settled !== wanted || query.isFetching) return { kind: 'computing' };
  if (query.isError) return { kind: 'failed', error: query.error, retry: () => void query.refetch() };
  return query.data === undefined ? { kind: 'computing' } : { kind: 'known', difference: query.data };
}
