/** Sums the usage of past periods as a budget would have counted it. */

import type { Queryable } from '../../store/queryable.ts';
import type { BudgetValues } from './entity.ts';
import { type CountedUsage, countedUsage, SHARES } from './state-queries.ts';

export interface PreviewedPeriod {
  readonly starts_on: string;
  readonly callers: number;
  readonly callers_reached: number;
  readonly reached_on: string | null;
  readonly spent: number;
  readonly requests: number;
  readonly blocked_requests: number;
  readonly blocked: number;
}

/** SQL for the first day of the period of a day. */
const STARTS = {
  day: 'u.day',
  week: `cast(date_trunc('week', cast(u.day as timestamp)) as date)`,
  month: `cast(date_trunc('month', cast(u.day as timestamp)) as date)`,
  total: 'cast(:from as date)',
} as const;

/** Returns the periods that have usage, in their order. Hours have no usage of their own. */
export async function previewedPeriods(
  q: Queryable,
  usage: CountedUsage,
  { period, per, limit_amount: limit }: Pick<BudgetValues, 'period' | 'per' | 'limit_amount'>,
): Promise<readonly PreviewedPeriod[]> {
  if (period === 'hour') return [];
  const { sql, bindings } = countedUsage(period === 'week' ? { ...usage, from: mondayOf(usage.from) } : usage);
  const { rows } = await q.raw<{ rows: PreviewedPeriod[] }>(
    `with daily as (
       select ${SHARES[per]} as share, ${STARTS[period]} as starts, u.day, sum(u.amount) as amount, sum(u.requests) as requests
       from (${sql}) u group by 1, 2, 3
     ), running as (
       select *, sum(amount) over (partition by share, starts order by day) as total from daily
     ), shares as (
       select share, starts, max(total) as spent, min(day) filter (where total >= :limit) as reached,
         sum(requests) as requests,
         sum(case when total - amount >= :limit then requests
           when total > :limit then ceil(requests * (total - :limit) / amount) else 0 end) as blocked_requests
       from running group by share, starts
     )
     select to_char(starts, 'YYYY-MM-DD') as starts_on, cast(count(*) as integer) as callers,
       cast(count(reached) as integer) as callers_reached, to_char(min(reached), 'YYYY-MM-DD') as reached_on,
       cast(sum(spent) as bigint) as spent, cast(sum(requests) as bigint) as requests,
       cast(sum(blocked_requests) as bigint) as blocked_requests,
       cast(sum(greatest(0, spent - :limit)) as bigint) as blocked
     from shares group by starts order by starts`,
    { ...bindings, limit },
  );
  return rows;
}

const DAY_MS = 86_400_000;

/** Returns the last Monday until a day. */
function mondayOf(day: string): string {
  const ms = Date.parse(day);
  const sinceMonday = (new Date(ms).getUTCDay() + 6) % 7;
  return new Date(ms - sinceMonday * DAY_MS).toISOString().slice(0, 10);
}
