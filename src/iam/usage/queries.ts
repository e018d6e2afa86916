/** The usage of a span of days: sums, in total and by model, key, user, day or tenant, of all keys or of one. */

import { Fault } from '../../domain/errors.ts';
import type { KeyId } from '../../domain/ids.ts';
import { type Page, scopeBinding, scopeCondition, type TenantScope } from '../../store/paging.ts';
import type { NamedQuery } from '../../store/prepared.ts';
import type { Queryable } from '../../store/queryable.ts';
import { conditionAfter, type Sorting, sortOrder } from '../../store/sorting.ts';
import type { ListOrder } from '../list/sort.ts';
import { SUMS, type UsageGroup, type UsageOrder, type UsageSums } from './schemas.ts';

/** The sums of usage as the store has them. */
export interface StoredSums extends Pick<UsageSums, (typeof SUMS)[number]> {
  /** The text of an integer, in 10^-9 of the currency. */
  readonly cost: string;
}

export interface UsageGroupRow extends StoredSums {
  /** A model, the id of a key, user or tenant, or a day; empty = none. */
  readonly member: string;
  /** Requests that named a model without a price. Absent if `countsUnpriced` is false. */
  readonly unpriced_requests?: number;
}

/** Days, the first and the last included: `2026-11-01`. */
export interface DaySpan {
  readonly from: string;
  readonly to: string;
}

/** A span as whole months and the days that they have too few or too many. */
export interface MonthlySpan {
  /** The first day of each. */
  readonly months: readonly string[];
  readonly added: readonly DaySpan[];
  readonly removed: readonly DaySpan[];
}

/** The groups of a list, and the rows that it reads. */
export interface UsageGroups {
  readonly group: UsageGroup;
  /** Only the usage of this key. */
  readonly key: KeyId | undefined;
  readonly span: DaySpan;
  readonly monthly: MonthlySpan;
  /** By `id`: in the order of the members. */
  readonly order: ListOrder<UsageOrder>;
}

/** The largest number of rows of a total or of few groups. A sum of this size takes about half a second. */
const MAX_SUMMED_ROWS = 500_000;
/** The largest number of rows of groups by key or user, of which each row may be a group: about a second. */
const MAX_GROUPED_ROWS = 200_000;

// The sum of a bigint is numeric, which the driver returns as text: the cost of all tenants may exceed an exact number.
const SUMMED = `${SUMS.map((name) => `cast(coalesce(sum(${name}), 0) as bigint) as ${name}`).join(', ')}, coalesce(sum(cost), 0) as cost`;
const COLUMNS = [...SUMS, 'cost'].join(', ');
const NOTHING = [...SUMS, 'cost'].map(() => '0').join(', ');
const NEGATED = [...SUMS, 'cost'].map((name) => `-${name} as ${name}`).join(', ');

/** The few rows of each model and day, or those of each key and user. */
const MEMBERS = {
  model: { table: 'by_model', member: 'model collate "C"' },
  day: { table: 'by_model', member: `to_char(day, 'YYYY-MM-DD') collate "C"` },
  tenant: { table: 'by_model', member: 'tenant_id collate "C"' },
  key: { table: 'by_month', member: 'key_id' },
  user: { table: 'by_month', member: 'user_id' },
} as const satisfies Readonly<Record<UsageGroup, object>>;

/** Reports whether the database knows the requests with a price of these groups. */
export function countsUnpriced({ group, key }: Pick<UsageGroups, 'group' | 'key'>): boolean {
  return key === undefined && MEMBERS[group].table === 'by_model';
}

/** Returns the largest number of rows that one answer sums. @param group undefined = in total */
export function mostRowsOf(group: UsageGroup | undefined): number {
  return group === 'key' || group === 'user' ? MAX_GROUPED_ROWS : MAX_SUMMED_ROWS;
}

const inDays = (scope: TenantScope): string =>
  `day >= cast(:from as date) and day <= cast(:to as date) and ${scopeCondition(scope, 'tenant_id')}`;

/** The rows of one key in usage_daily. An index finds them by each month of the span. */
const ofKey = (scope: TenantScope): string =>
  `${inDays(scope)} and key_id collate "C" = :key and usage_month(day) = any(array(
     select generate_series(usage_month(cast(:from as date)), usage_month(cast(:to as date)))))`;

/**
 * @param key undefined = all keys
 * @returns undefined if there are more rows than `mostRowsOf` allows
 */
export async function sumUsage(
  q: Queryable,
  scope: TenantScope,
  span: DaySpan,
  key?: KeyId,
): Promise<StoredSums | undefined> {
  const read = key === undefined ? `usage_by_model where ${inDays(scope)}` : `usage_daily where ${ofKey(scope)}`;
  const { rows } = await q.raw<{ rows: (StoredSums & { readonly rows_read: number })[] }>(
    `select ${SUMMED}, cast(count(*) as integer) as rows_read
     from (select ${COLUMNS} from ${read} limit :most) read`,
    { ...scopeBinding(scope), ...span, ...(key === undefined ? {} : { key }), most: MAX_SUMMED_ROWS + 1 },
  );
  const [row] = rows;
  if (row === undefined) throw new Fault('the database returned no row for a sum');
  const { rows_read: count, ...sums } = row;
  return count > MAX_SUMMED_ROWS ? undefined : sums;
}

/** Counts the requests that named a model without a price. */
export async function countUnpriced(q: Queryable, scope: TenantScope, span: DaySpan): Promise<number> {
  const { rows } = await q.raw<{ rows: UnpricedRow[] }>(unpricedRows(`''`, inDays(scope)), {
    ...scopeBinding(scope),
    ...span,
  });
  return rows[0]?.requests ?? 0;
}

/** Returns the models with the most requests that had no price. */
export async function unpricedModels(
  q: Queryable,
  scope: TenantScope,
  span: DaySpan,
  take: number,
): Promise<readonly UnpricedRow[]> {
  const { rows } = await q.raw<{ rows: UnpricedRow[] }>(
    `select * from (${unpricedRows(MEMBERS.model.member, inDays(scope))}) models
     where requests > 0 order by requests desc, member limit :take`,
    { ...scopeBinding(scope), ...span, take },
  );
  return rows;
}

interface UnpricedRow {
  readonly member: string;
  readonly requests: number;
}

/** Returns SQL for the requests with a model, less those with a price, by member. */
function unpricedRows(member: string, within: string): string {
  return `select member, cast(sum(requests) as bigint) as requests from (
       select ${member} as member, requests from usage_by_model where ${within} and model <> ''
       union all select ${member}, -requests from usage_by_price where ${within}
     ) named group by member`;
}

/**
 * Returns a page of groups.
 * @returns undefined if it would sum more rows than `mostRowsOf` allows
 */
export async function listUsage(
  q: Queryable,
  scope: TenantScope,
  groups: UsageGroups,
  page: Page,
): Promise<readonly UsageGroupRow[] | undefined> {
  if (isMonthInOrder(groups)) return listMonth(q, scope, groups, page);
  const { order, sql, bindings } = orderOf(groups.order, page);
  const read = { ...scopeBinding(scope), ...bindingsOf(groups) };
  if (await isTooMuch(q, rowsOf(scope, groups), read, mostRowsOf(groups.group))) return undefined;
  const sums = countsUnpriced(groups)
    ? `${SUMMED}, cast(sum(unpriced_requests) as bigint) as unpriced_requests`
    : SUMMED;
  const { rows } = await q.raw<{ rows: UsageGroupRow[] }>(
    `select * from (select member, ${sums} from (${rowsOf(scope, groups)}) usage group by member) groups
     where (requests, total_tokens) <> (0, 0) and ${sql} order by ${order} limit :take`,
    { ...read, ...bindings, take: page.take },
  );
  return rows;
}

/** Counts the rows first: to group too many takes longer than a statement may. */
async function isTooMuch(q: Queryable, sql: string, bindings: NamedQuery['bindings'], most: number): Promise<boolean> {
  const { rows } = await q.raw<{ rows: { readonly found: number }[] }>(
    `select cast(count(*) as integer) as found from (select 1 from (${sql}) usage limit :limit) counted`,
    { ...bindings, limit: most + 1 },
  );
  return (rows[0]?.found ?? 0) > most;
}

/** Returns the position of a row, which `listUsage` reads. */
export function usagePosition(row: UsageGroupRow, { member }: UsageGroups['order']): readonly string[] {
  return member === 'id' ? [row.member] : [String(row[member]), row.member];
}

function orderOf(
  { member, descending }: UsageGroups['order'],
  { after }: Page,
): NamedQuery & { readonly order: string } {
  if (member === 'id') {
    const order = `member ${descending ? 'desc' : 'asc'}`;
    const [afterId] = after ?? [];
    return afterId === undefined
      ? { order, sql: 'true', bindings: {} }
      : { order, sql: `member ${descending ? '<' : '>'} :afterId`, bindings: { afterId } };
  }
  const sorting: Sorting = { value: member, kind: 'number', descending, id: 'member' };
  return { order: sortOrder(sorting), ...conditionAfter(sorting, after) };
}

/** The keys or users of one month in the order of an index: a page reads no others. */
function isMonthInOrder({ group, key, order, monthly }: UsageGroups): boolean {
  const { months, added, removed } = monthly;
  const isWhole = months.length === 1 && added.length + removed.length === 0;
  return key === undefined && MEMBERS[group].table === 'by_month' && order.member === 'id' && isWhole;
}

async function listMonth(
  q: Queryable,
  scope: TenantScope,
  { group, monthly, order }: UsageGroups,
  page: Page,
): Promise<readonly UsageGroupRow[]> {
  const { member } = MEMBERS[group];
  const [after] = page.after ?? [];
  const following = after === undefined ? '' : `and ${member} ${order.descending ? '<' : '>'} :after`;
  const { rows } = await q.raw<{ rows: UsageGroupRow[] }>(
    `select ${member} as member, ${SUMMED} from usage_by_month
     where month = cast(:month as date) and ${scopeCondition(scope, 'tenant_id')} ${following}
     group by ${member} order by ${member} ${order.descending ? 'desc' : 'asc'} limit :take`,
    {
      ...scopeBinding(scope),
      ...(after === undefined ? {} : { after }),
      month: monthly.months[0] ?? '',
      take: page.take,
    },
  );
  return rows;
}

/** Returns SQL for the rows of all groups, each with its member. */
function rowsOf(scope: TenantScope, { group, key, monthly: { months, added, removed } }: UsageGroups): string {
  const { table, member } = MEMBERS[group];
  if (key !== undefined) {
    const name = table === 'by_month' ? `${member} collate "C"` : member;
    return `select ${name} as member, ${COLUMNS} from usage_daily where ${ofKey(scope)}`;
  }
  if (table === 'by_model') {
    return `select ${member} as member, ${COLUMNS}, case when model = '' then 0 else requests end as unpriced_requests
       from usage_by_model where ${inDays(scope)}
     union all select ${member}, ${NOTHING}, -requests from usage_by_price where ${inDays(scope)}`;
  }
  const within = scopeCondition(scope, 'tenant_id');
  const daily = (columns: string, name: string) => (_: DaySpan, i: number) =>
    `select ${member} collate "C" as member, ${columns} from usage_daily
     where day >= cast(:${name}From${i} as date) and day <= cast(:${name}To${i} as date) and ${within}`;
  return [
    ...(months.length === 0
      ? []
      : [
          `select ${member} as member, ${COLUMNS} from usage_by_month where month = any(cast(:months as date[])) and ${within}`,
        ]),
    ...added.map(daily(COLUMNS, 'added')),
    ...removed.map(daily(NEGATED, 'removed')),
  ].join(' union all ');
}

function bindingsOf({ group, key, span, monthly }: UsageGroups): Readonly<Record<string, string | readonly string[]>> {
  if (key !== undefined) return { ...span, key };
  if (MEMBERS[group].table === 'by_model') return { ...span };
  const { months, added, removed } = monthly;
  const days = (name: string, spans: readonly DaySpan[]) =>
    spans.flatMap(({ from, to }, i): [string, string][] => [
      [`${name}From${i}`, from],
      [`${name}To${i}`, to],
    ]);
  return {
    ...(months.length === 0 ? {} : { months }),
    ...Object.fromEntries([...days('added', added), ...days('removed', removed)]),
  };
}
