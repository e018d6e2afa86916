/** Usage of a span of days as CSV: the total in one row, or every row of one grouping. */

import type { AdminParts } from '../caller/caller.ts';
import { csvLine } from '../list/csv.ts';
import { batchOf, type ExportCaller, startExport, stoppedCsv } from '../list/export.ts';
import { cursorsOf } from '../list/list.ts';
import { type StoredSums, type UsageGroupRow, usagePosition } from './queries.ts';
import { costText, readGroups, readTotal, requestedUsage, tenantLabel } from './read.ts';
import { SUMS, type UsageQuery } from './schemas.ts';

/** Rows of one batch. Each batch of a sorted list sums all of them. */
const BATCH = { inOrder: 500, sorted: 2000 };

const COLUMNS = [...SUMS, 'cost'] as const;

interface UsageExport {
  readonly name: string;
  readonly pieces: AsyncIterable<string>;
}

/**
 * Resolves after the first rows are fetched.
 * @throws Refusal `invalid_parameter` for an invalid cursor, or the cursor of another list, and as `requestedUsage`
 */
export async function exportUsage(
  parts: Pick<AdminParts, 'db' | 'feed' | 'now'>,
  from: ExportCaller,
  query: UsageQuery,
): Promise<UsageExport> {
  const { knex } = parts.db;
  const { caller } = from;
  const { period: month, span, key, groups, query: named } = requestedUsage(caller, query);
  const period = month ?? `${span.from}/${span.to}`;
  const cursors = cursorsOf(caller, 'usage', named);
  const name = `usage-${period.replace('/', '_')}`;
  const start = [period, tenantLabel(caller)];
  if (groups === undefined) return { name, pieces: totalCsv(start, await readTotal(knex, caller, span, key)) };
  const { group, order } = groups;
  const take = BATCH[order.member === 'id' ? 'inOrder' : 'sorted'];
  const pieces = await startExport<UsageGroupRow>(parts, from, cursors, {
    fetch: async (now, after) => {
      const rows = await readGroups(knex, now, groups, { after, take });
      return batchOf({ rows, more: rows.length === take }, (row) => usagePosition(row, order));
    },
    format: {
      header: csvLine(['period', 'tenant_id', group, ...COLUMNS]),
      line: (row) => csvLine([...start, row.member, ...cellsOf(row)]),
      stopped: stoppedCsv,
    },
  });
  return { name, pieces };
}

async function* totalCsv(start: readonly string[], total: StoredSums): AsyncGenerator<string> {
  yield csvLine(['period', 'tenant_id', ...COLUMNS]) + csvLine([...start, ...cellsOf(total)]);
}

function cellsOf(sums: StoredSums): readonly (number | string)[] {
  return [...SUMS.map((name) => sums[name]), costText(sums)];
}
