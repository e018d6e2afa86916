/** The usage by day, with the total of all days. */

import { type UseQueryResult, useQuery } from '@tanstack/react-query';
import type { UsageRow, UsageSums } from '../../../../client/index.ts';
import { client as ownClient } from '../../api/client.ts';
import { useTenant } from '../../api/session.ts';
import { useNow } from '../../ui/time.tsx';
import { type Days, timeIn } from './month.ts';

const PAGE = 200;

export interface DailyUsage {
  readonly total: UsageSums;
  readonly rows: readonly UsageRow[];
}

/** The client and the query for one tenant, or for the whole platform. */
export function useUsageOf(isPlatform: boolean) {
  const { id, client } = useTenant();
  return isPlatform
    ? { id: '*', client: ownClient, tenant: { tenant_id: '*' } as const }
    : { id, client, tenant: {} as const };
}

/** The time that the clock of the usage's days shows, as `timeIn` returns it. In UTC until the zone is known. */
export function useUsageTime(isPlatform: boolean): number {
  const { id: actingIn } = useTenant();
  const { id, client, tenant } = useUsageOf(isPlatform);
  const { data } = useQuery({
    queryKey: [actingIn, 'usage', id, 'zone'],
    queryFn: ({ signal }) => client.request('GET', '/v1/iam/usage', { query: tenant, signal }),
    select: ({ timezone }) => timezone,
  });
  return timeIn(data ?? 'UTC', useNow());
}

/** @param key the id of a key; default: all usage */
export function useDailyUsage(days: Days, isPlatform: boolean, key?: string): UseQueryResult<DailyUsage> {
  const { id: actingIn } = useTenant();
  const { id, client, tenant } = useUsageOf(isPlatform);
  return useQuery({
    queryKey: [actingIn, 'usage', id, 'days', days, key],
    queryFn: async ({ signal }) => {
      const query = { ...tenant, ...days, key_id: key, group_by: 'day', limit: PAGE } as const;
      const first = await client.request('GET', '/v1/iam/usage', { query, signal });
      // A year has more days than a page.
      const rest =
        first.next_cursor === null
          ? undefined
          : await client.request('GET', '/v1/iam/usage', { query: { ...query, cursor: first.next_cursor }, signal });
      return { total: first.total, rows: [...first.data, ...(rest?.data ?? [])] };
    },
  });
}
