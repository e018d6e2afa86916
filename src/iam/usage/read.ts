/** Usage of one calendar month: a total, and pages of its parts by model, key, user or day. */

import type { AdminParts, Caller } from '../caller/caller.ts';
import { paged, scopeOf } from '../list/list.ts';
import { momentOf, monthOf } from './period.ts';
import { listUsage, sumUsage, type UsageGroupRow } from './queries.ts';
import type { UsageGroup, UsageQuery, UsageReport, UsageRow } from './schemas.ts';

/** @throws Refusal `invalid_parameter` for an invalid cursor, or the cursor of another list */
export async function readUsage(
  parts: Pick<AdminParts, 'db'>,
  caller: Caller,
  query: UsageQuery,
): Promise<UsageReport> {
  const { knex } = parts.db;
  const period = requestedPeriod(caller, query);
  const month = monthOf(period);
  const scope = scopeOf(caller);
  const { group_by: group } = query;
  const inPeriod: UsageQuery = { ...query, period };
  const { data, has_more, next_cursor } = await paged<UsageGroupRow, UsageRow>(
    caller,
    'usage',
    inPeriod,
    async (page) => (group === undefined ? [] : listUsage(knex, scope, month, group, page)),
    (row) => [row.member],
    (row) => rowOf(row, group),
  );
  const total = await sumUsage(knex, scope, month);
  return { period, tenant_id: tenantLabel(caller), total, data: [...data], has_more, next_cursor };
}

/**
 * Returns the requested period; by default the current one, in the tenant's time zone, or in UTC for all tenants
 * together.
 */
export function requestedPeriod(caller: Caller, { period }: UsageQuery): string {
  const timezone = caller.everyTenant ? undefined : caller.snapshot.effective?.settings.timezone;
  return period ?? momentOf(timezone, caller.nowMs).period;
}

export function tenantLabel(caller: Caller): string {
  return caller.everyTenant ? '*' : caller.tenant;
}

function rowOf({ member, ...sums }: UsageGroupRow, group: UsageGroup | undefined): UsageRow {
  return group === undefined ? sums : { [group]: member === '' ? null : member, ...sums };
}
