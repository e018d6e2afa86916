/** Usage of one calendar month as CSV: the total on one line, or everything of one grouping, fetched batch by batch as the reader takes it. */

import { listUsage, sumUsage, type UsageGroup, type UsageGroupRow, type UsageSums } from '../../store/queries/usage.ts';
import type { AdminParts, Caller } from '../caller.ts';
import { csvLine } from '../csv.ts';
import { scopeOf } from '../list.ts';
import { monthOf } from './period.ts';
import { periodOf, tenantOf, type UsageQuery } from './read.ts';

const SUMS = [
  'requests',
  'prompt_tokens',
  'completion_tokens',
  'cached_tokens',
  'total_tokens',
  'estimated_tokens',
] as const satisfies readonly (keyof UsageSums)[];

/** Between two batches no connection is held, however slowly the reader reads. */
const BATCH = 500;

export interface UsageExport {
  readonly period: string;
  readonly pieces: AsyncIterable<string>;
}

/** Resolves when the first rows are there, so that what can fail has a chance to do so before the answer begins. */
export async function exportUsage(parts: Pick<AdminParts, 'db'>, caller: Caller, query: UsageQuery): Promise<UsageExport> {
  const { knex } = parts.db;
  const period = periodOf(caller, query);
  const month = monthOf(period);
  const scope = scopeOf(caller);
  const { group_by: group } = query;
  const start = [period, tenantOf(caller)];
  if (group === undefined) return { period, pieces: whole(start, await sumUsage(knex, scope, month)) };
  const fetch = (after: readonly string[] | undefined): Promise<readonly UsageGroupRow[]> =>
    listUsage(knex, scope, month, group, { after, take: BATCH });
  return { period, pieces: grouped(start, group, await fetch(undefined), fetch) };
}

async function* whole(start: readonly string[], total: UsageSums): AsyncGenerator<string> {
  yield csvLine(['period', 'tenant_id', ...SUMS]) + csvLine([...start, ...cellsOf(total)]);
}

async function* grouped(
  start: readonly string[],
  group: UsageGroup,
  first: readonly UsageGroupRow[],
  fetch: (after: readonly string[]) => Promise<readonly UsageGroupRow[]>,
): AsyncGenerator<string> {
  yield csvLine(['period', 'tenant_id', group, ...SUMS]);
  for (let rows = first; ; ) {
    const last = rows.at(-1);
    if (last === undefined) return;
    yield rows.map((row) => csvLine([...start, row.member, ...cellsOf(row)])).join('');
    if (rows.length < BATCH) return;
    rows = await fetch([last.member]);
  }
}

function cellsOf(sums: UsageSums): readonly number[] {
  return SUMS.map((name) => sums[name]);
}
