/** The decisions of a span, by the hour or the day and by the reason of a denial. */

import { useQuery } from '@tanstack/react-query';
import type { DecisionsOfMinute } from '../../../../client/index.ts';
import { type Tenant, useTenant } from '../../api/session.ts';
import { useNow } from '../../ui/time.tsx';
import { decidedOf, STEPS } from './decided.ts';
import type { Span } from './search.ts';

const PAGE = 200;
/** Twenty-four hours with thirty reasons each. More are not asked for. */
const MAX_PAGES = 4;
const FRESH_MS = 30_000;

export function useDecided(span: Span, isEnabled: boolean) {
  const tenant = useTenant();
  const { ms, count } = STEPS[span];
  const toMs = Math.floor(useNow() / ms) * ms + ms;
  const fromMs = toMs - count * ms;
  return useQuery({
    queryKey: [tenant.id, 'decisions', span, fromMs],
    queryFn: async ({ signal }) => decidedOf(await rowsSince(tenant, span, fromMs, signal), span, fromMs),
    staleTime: FRESH_MS,
    refetchInterval: FRESH_MS,
    enabled: isEnabled,
    placeholderData: (before, query) => (query?.queryKey[2] === span ? before : undefined),
  });
}

async function rowsSince(
  { client }: Tenant,
  span: Span,
  fromMs: number,
  signal: AbortSignal,
): Promise<readonly DecisionsOfMinute[]> {
  const rows: DecisionsOfMinute[] = [];
  let cursor: string | undefined;
  const from = new Date(fromMs).toISOString();
  for (let page = 0; page < MAX_PAGES; page++) {
    const query = { from, interval: STEPS[span].interval, group_by: 'code', limit: PAGE, cursor } as const;
    const answer = await client.request('GET', '/v1/iam/decisions', { query, signal });
    rows.push(...answer.data);
    if (answer.next_cursor === null) break;
    cursor = answer.next_cursor;
  }
  return rows;
}
