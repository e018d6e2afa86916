/** Usage of a span of days: a total, and pages of its parts by model, key, user, day or tenant. */

import { Refusal } from '../../domain/errors.ts';
import { type KeyId, parseId } from '../../domain/ids.ts';
import { formatMoney } from '../../domain/money.ts';
import type { Page } from '../../store/paging.ts';
import type { Queryable } from '../../store/queryable.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { paged, scopeOf } from '../list/list.ts';
import { type NamedId, readNames } from '../list/names.ts';
import { dayIn, daysIn, momentOf, monthlySpan, spanOfPeriod, UTC } from './period.ts';
import {
  countsUnpriced,
  countUnpriced,
  type DaySpan,
  listUsage,
  mostRowsOf,
  type StoredSums,
  sumUsage,
  type UsageGroupRow,
  type UsageGroups,
  usagePosition,
} from './queries.ts';
import {
  MAX_DAYS,
  type UsageGroup,
  type UsageQuery,
  type UsageReport,
  type UsageRow,
  type UsageSums,
  usageOrders,
} from './schemas.ts';

/** @throws Refusal `invalid_parameter` for an invalid cursor, or the cursor of another list, and as `requestedUsage` */
export async function readUsage(
  parts: Pick<AdminParts, 'db'>,
  caller: Caller,
  query: UsageQuery,
): Promise<UsageReport> {
  const { knex } = parts.db;
  const { timezone, period, span, key, groups, query: named } = requestedUsage(caller, query);
  const { data, has_more, next_cursor } = await paged<UsageGroupRow, UsageRow>(
    caller,
    'usage',
    named,
    async (page) => (groups === undefined ? [] : readGroups(knex, caller, groups, page)),
    (row) => (groups === undefined ? [] : usagePosition(row, groups.order)),
    (row) => rowOf(row, groups?.group),
  );
  const sums = await readTotal(knex, caller, span, key);
  const unpriced = key === undefined ? { unpriced_requests: await countUnpriced(knex, scopeOf(caller), span) } : {};
  const total = { ...shownSums(sums), ...unpriced };
  const rows = query.include === 'names' ? await withNames(parts, caller, data, groups?.group) : [...data];
  return { period, ...span, timezone, tenant_id: tenantLabel(caller), total, data: rows, has_more, next_cursor };
}

interface RequestedUsage {
  readonly timezone: string;
  /** Null for a span that is not a named month. */
  readonly period: string | null;
  readonly span: DaySpan;
  /** Undefined: all keys. */
  readonly key: KeyId | undefined;
  /** Undefined: nothing is grouped. */
  readonly groups: UsageGroups | undefined;
  /** The query with its defaults, to which a cursor belongs. */
  readonly query: UsageQuery;
}

/**
 * Returns the requested days, by default those of the current month, in the tenant's time zone, or in UTC for all
 * tenants together.
 * @throws Refusal `invalid_parameter` for parameters that exclude each other
 */
export function requestedUsage(caller: Caller, query: UsageQuery): RequestedUsage {
  const { group_by: group } = query;
  if (group === 'tenant' && !caller.everyTenant) {
    throw invalid('group_by', 'Grouping by tenant needs tenant_id=*, which platform administrators may send.');
  }
  const timezone = (caller.everyTenant ? undefined : caller.snapshot.effective?.settings.timezone) ?? UTC;
  const now = momentOf(timezone, caller.nowMs);
  const period = query.from === undefined && query.to === undefined ? (query.period ?? now.period) : null;
  const span = period === null ? spanOf(query, dayIn(now)) : spanOfPeriod(period);
  const ordered = usageOrders.inOrder(query);
  const key = keyOf(query);
  const order = usageOrders.orderOf(ordered);
  if (group !== undefined && order.member === 'unpriced_requests' && !countsUnpriced({ group, key })) {
    throw invalid('sort', 'The rows of keys and users, and those of one key, have no unpriced_requests.');
  }
  return {
    timezone,
    period,
    span,
    key,
    groups: group && { group, key, span, monthly: monthlySpan(span), order },
    query: period === null ? { ...ordered, ...span } : { ...ordered, period },
  };
}

/** @throws Refusal `invalid_parameter` for a text that is no id of a key */
function keyOf({ key_id: text }: UsageQuery): KeyId | undefined {
  if (text === undefined) return undefined;
  const key = parseId('key', text);
  if (key === undefined) throw invalid('key_id', 'key_id must be the id of an API key.');
  return key;
}

function spanOf({ period, from, to }: UsageQuery, today: string): DaySpan {
  if (period !== undefined) throw invalid('period', 'A request has a period, or from and to.');
  if (from === undefined) throw invalid('from', 'A request with to needs from as well.');
  const span = { from, to: to ?? today };
  const days = daysIn(span);
  if (days < 1) throw invalid('to', 'to must not be before from.');
  if (days > MAX_DAYS) throw invalid('to', `A request covers at most ${MAX_DAYS} days.`);
  return span;
}

/** @throws Refusal `invalid_parameter` if there is too much usage to sum */
export async function readGroups(
  q: Queryable,
  caller: Caller,
  groups: UsageGroups,
  page: Page,
): Promise<readonly UsageGroupRow[]> {
  return bounded(await listUsage(q, scopeOf(caller), groups, page), groups.group);
}

/** @throws Refusal `invalid_parameter` if there is too much usage to sum */
export async function readTotal(q: Queryable, caller: Caller, span: DaySpan, key?: KeyId): Promise<StoredSums> {
  return bounded(await sumUsage(q, scopeOf(caller), span, key), undefined);
}

function bounded<T>(summed: T | undefined, group: UsageGroup | undefined): T {
  if (summed !== undefined) return summed;
  const most = mostRowsOf(group).toLocaleString('en-US');
  const detail = `The server sums at most ${most} rows of usage for one answer${group === undefined ? '' : ` by ${group}`}. Ask for fewer days.`;
  throw invalid('from', detail);
}

function invalid(param: 'period' | 'from' | 'to' | 'group_by' | 'key_id' | 'sort', detail: string): Refusal {
  return new Refusal('invalid_parameter', detail, { param });
}

export function tenantLabel(caller: Caller): string {
  return caller.everyTenant ? '*' : caller.tenant;
}

function rowOf({ member, ...sums }: UsageGroupRow, group: UsageGroup | undefined): UsageRow {
  const shown = shownSums(sums);
  return group === undefined ? shown : { [group]: member === '' ? null : member, ...shown };
}

function shownSums(sums: StoredSums): UsageSums {
  return { ...sums, cost: costText(sums) };
}

export function costText({ cost }: StoredSums): string {
  return formatMoney(BigInt(cost));
}

async function withNames(
  parts: Pick<AdminParts, 'db'>,
  caller: Caller,
  rows: readonly UsageRow[],
  group: UsageGroup | undefined,
): Promise<UsageRow[]> {
  const ids = rows.map((row) => namedIn(row, group));
  const nameOf = await readNames(
    parts,
    caller,
    ids.filter((id) => id !== undefined),
  );
  return rows.map((row, i) => {
    const id = ids[i];
    return { ...row, name: id === undefined ? null : nameOf(id) };
  });
}

function namedIn(row: UsageRow, group: UsageGroup | undefined): NamedId | undefined {
  switch (group) {
    case 'key':
      return row.key ? { kind: 'api_key', id: row.key } : undefined;
    case 'user':
    case 'tenant': {
      const id = row[group];
      return id ? { kind: group, id } : undefined;
    }
    case 'model':
    case 'day':
    case undefined:
      return undefined;
    default:
      return group satisfies never;
  }
}
