/** Usage of one calendar month: a total, and pages of the same by model, key, user or day. */

import type { AdminParts, Caller } from '../caller/caller.ts';
import { type ListQuery, paged, scopeOf } from '../list/list.ts';
import { momentOf, monthOf } from './period.ts';
import { listUsage, sumUsage, type UsageGroup, type UsageGroupRow, type UsageSums } from './queries.ts';

export interface UsageQuery {
  /** `2026-11`; undefined = the current one. */
  readonly period?: string;
  readonly group_by?: UsageGroup;
}

export interface UsagePageQuery extends UsageQuery, ListQuery {}

/** The sums of one group, under the group's name: null for requests without a key, and the like. */
export type UsageRow = UsageSums & { readonly [Group in UsageGroup]?: string | null };

export interface UsageResource {
  readonly period: string;
  /** `*` for all tenants together. */
  readonly tenant_id: string;
  readonly total: UsageSums;
  /** Empty where nothing is grouped. */
  readonly data: readonly UsageRow[];
  readonly has_more: boolean;
  readonly next_cursor: string | null;
}

/** @throws Refusal `invalid_parameter` for a cursor that is none, or another list's */
export async function readUsage(
  parts: Pick<AdminParts, 'db'>,
  caller: Caller,
  query: UsagePageQuery,
): Promise<UsageResource> {
  const { knex } = parts.db;
  const period = periodOf(caller, query);
  const month = monthOf(period);
  const scope = scopeOf(caller);
  const { group_by: group } = query;
  const asked: UsagePageQuery = { ...query, period };
  const list = await paged<UsageGroupRow, UsageRow>(
    caller,
    'usage',
    asked,
    async (page) => (group === undefined ? [] : listUsage(knex, scope, month, group, page)),
    (row) => [row.member],
    (row) => shown(row, group),
  );
  const total = await sumUsage(knex, scope, month);
  return {
    period,
    tenant_id: tenantOf(caller),
    total,
    data: list.data,
    has_more: list.has_more,
    next_cursor: list.next_cursor,
  };
}

/** The period that is asked for; else the current one in the tenant's time zone, of all tenants together in UTC. */
export function periodOf(caller: Caller, { period }: UsageQuery): string {
  const timezone = caller.everyTenant ? undefined : caller.snapshot.effective?.settings.timezone;
  return period ?? momentOf(timezone, caller.nowMs).period;
}

export function tenantOf(caller: Caller): string {
  return caller.everyTenant ? '*' : caller.tenant;
}

function shown({ member, ...sums }: UsageGroupRow, group: UsageGroup | undefined): UsageRow {
  return group === undefined ? sums : { [group]: member === '' ? null : member, ...sums };
}
