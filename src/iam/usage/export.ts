/** Usage of one calendar month as CSV: the total on one line, or every row of one grouping. */

import type { AdminParts } from '../caller/caller.ts';
import { csvLine } from '../list/csv.ts';
import { type ExportCaller, startExport, stoppedCsv } from '../list/export.ts';
import { cursorsOf, scopeOf } from '../list/list.ts';
import { monthOf } from './period.ts';
import { listUsage, sumUsage, type UsageGroupRow, type UsageSums } from './queries.ts';
import { periodOf, tenantOf, type UsagePageQuery } from './read.ts';

const SUMS = [
  'requests',
  'prompt_tokens',
  'completion_tokens',
  'cached_tokens',
  'total_tokens',
  'estimated_tokens',
] as const satisfies readonly (keyof UsageSums)[];

/** Rows of one batch. */
const BATCH = 500;

export interface UsageExport {
  readonly period: string;
  readonly pieces: AsyncIterable<string>;
}

/**
 * Resolves when the first rows are fetched.
 * @throws Refusal `invalid_parameter` for a cursor that is none, or another list's
 */
export async function exportUsage(
  parts: Pick<AdminParts, 'db' | 'feed' | 'now'>,
  from: ExportCaller,
  query: UsagePageQuery,
): Promise<UsageExport> {
  const { knex } = parts.db;
  const { caller } = from;
  const period = periodOf(caller, query);
  const month = monthOf(period);
  const { group_by: group } = query;
  const asked: UsagePageQuery = { ...query, period };
  const cursors = cursorsOf(caller, 'usage', asked);
  const start = [period, tenantOf(caller)];
  if (group === undefined) return { period, pieces: whole(start, await sumUsage(knex, scopeOf(caller), month)) };
  const pieces = await startExport<UsageGroupRow>(parts, from, cursors, {
    fetch: async (now, after) => {
      const rows = await listUsage(knex, scopeOf(now), month, group, { after, take: BATCH });
      return { rows, more: rows.length === BATCH };
    },
    position: (row) => [row.member],
    format: {
      header: csvLine(['period', 'tenant_id', group, ...SUMS]),
      line: (row) => csvLine([...start, row.member, ...cellsOf(row)]),
      stopped: stoppedCsv,
    },
  });
  return { period, pieces };
}

async function* whole(start: readonly string[], total: UsageSums): AsyncGenerator<string> {
  yield csvLine(['period', 'tenant_id', ...SUMS]) + csvLine([...start, ...cellsOf(total)]);
}

function cellsOf(sums: UsageSums): readonly number[] {
  return SUMS.map((name) => sums[name]);
}
