/** Usage of one calendar month as CSV: the total in one row, or every row of one grouping. */

import type { AdminParts } from '../caller/caller.ts';
import { csvLine } from '../list/csv.ts';
import { batchOf, type ExportCaller, startExport, stoppedCsv } from '../list/export.ts';
import { cursorsOf, scopeOf } from '../list/list.ts';
import { monthOf } from './period.ts';
import { listUsage, sumUsage, type UsageGroupRow } from './queries.ts';
import { requestedPeriod, tenantLabel } from './read.ts';
import type { UsageQuery, UsageSums } from './schemas.ts';

const SUMS = [
  'requests',
  'prompt_tokens',
  'completion_tokens',
  'cached_tokens',
  'total_tokens',
  'estimated_tokens',
] as const satisfies readonly (keyof UsageSums)[];

const BATCH = 500;

export interface UsageExport {
  readonly period: string;
  readonly pieces: AsyncIterable<string>;
}

/**
 * Resolves after the first rows are fetched.
 * @throws Refusal `invalid_parameter` for an invalid cursor, or the cursor of another list
 */
export async function exportUsage(
  parts: Pick<AdminParts, 'db' | 'feed' | 'now'>,
  from: ExportCaller,
  query: UsageQuery,
): Promise<UsageExport> {
  const { knex } = parts.db;
  const { caller } = from;
  const period = requestedPeriod(caller, query);
  const month = monthOf(period);
  const { group_by: group } = query;
  const inPeriod: UsageQuery = { ...query, period };
  const cursors = cursorsOf(caller, 'usage', inPeriod);
  const start = [period, tenantLabel(caller)];
  if (group === undefined) return { period, pieces: totalCsv(start, await sumUsage(knex, scopeOf(caller), month)) };
  const pieces = await startExport<UsageGroupRow>(parts, from, cursors, {
    fetch: async (now, after) => {
      const rows = await listUsage(knex, scopeOf(now), month, group, { after, take: BATCH });
      return batchOf({ rows, more: rows.length === BATCH }, (row) => [row.member]);
    },
    format: {
      header: csvLine(['period', 'tenant_id', group, ...SUMS]),
      line: (row) => csvLine([...start, row.member, ...cellsOf(row)]),
      stopped: stoppedCsv,
    },
  });
  return { period, pieces };
}

async function* totalCsv(start: readonly string[], total: UsageSums): AsyncGenerator<string> {
  yield csvLine(['period', 'tenant_id', ...SUMS]) + csvLine([...start, ...cellsOf(total)]);
}

function cellsOf(sums: UsageSums): readonly number[] {
  return SUMS.map((name) => sums[name]);
}
