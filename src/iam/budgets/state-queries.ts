/**
 * Reads what was spent of budgets: the counters of the current periods, and the usage by day behind them. Finds the
 * callers that budgets select, and sums the usage of past periods as a budget would have counted it.
 */

import type { BudgetId, KeyId, RoleName, TenantId, UserId } from '../../domain/ids.ts';
import type { BudgetScope, BudgetUnit, Metadata } from '../../domain/records.ts';
import type { Queryable } from '../../store/queryable.ts';
import type { DaySpan } from '../usage/queries.ts';
import type { BudgetValues } from './entity.ts';

/** A counter of spent amounts. @see Charge.period */
export interface Counter {
  readonly tenant: TenantId;
  readonly period: string;
}

export interface CounterState {
  readonly spent: number;
  /** By all processes: for requests in progress, and ahead of need. */
  readonly held: number;
}

const UNUSED: CounterState = { spent: 0, held: 0 };

/** Returns a function that returns the state of one of the counters. */
export async function readCounters(
  q: Queryable,
  counters: readonly Counter[],
): Promise<(counter: Counter) => CounterState> {
  if (counters.length === 0) return () => UNUSED;
  const { rows } = await q.raw<{ rows: (Counter & CounterState)[] }>(
    `select b.tenant_id as tenant, b.period, b.spent, b.held
     from jsonb_to_recordset(cast(:counters as jsonb)) as c (tenant text, period text)
     join token_budgets b on b.tenant_id = c.tenant and b.period = c.period`,
    { counters: JSON.stringify(counters) },
  );
  const nameOf = ({ tenant, period }: Counter): string => `${tenant} ${period}`;
  const states = new Map(rows.map((row) => [nameOf(row), row]));
  return (counter) => states.get(nameOf(counter)) ?? UNUSED;
}

interface AlertingCounter extends Counter {
  readonly limit: number;
  /** The smallest fraction of the limit that is an alert. */
  readonly fraction: number;
}

/** The largest number of amounts of one budget whose alerts a change notes, so that it ends within its timeout. */
const MOST_ALERTING = 1000;

/**
 * Notes the alerts that amounts have reached.
 * @param counters the shared ones. Those of the callers of the same budget and period count as well: those that spent
 *   most, because they are the likeliest to have no further booking
 */
export async function noteAlerts(q: Queryable, counters: readonly AlertingCounter[]): Promise<void> {
  await q.raw(
    `select metering_note_alerts(array_agg(b.tenant_id), array_agg(b.period), array_agg(b.spent))
     from jsonb_to_recordset(cast(:counters as jsonb)) as c (tenant text, period text, "limit" bigint, fraction numeric)
     cross join lateral (
       select b.tenant_id, b.period, b.spent from token_budgets b
       where starts_with(b.period, 'bud_')
         and metering_budget_period(b.period) collate "C" = metering_budget_period(c.period) collate "C"
         and b.tenant_id = c.tenant and b.spent >= c.fraction * c."limit"
       order by b.spent desc limit :most
     ) b`,
    { counters: JSON.stringify(counters), most: MOST_ALERTING },
  );
}

export interface CountedUsage extends DaySpan {
  readonly tenant: TenantId;
  readonly unit: BudgetUnit;
  readonly appliesTo: BudgetScope;
  readonly models: readonly string[] | undefined;
}

/** The column of `usage_daily` that a unit counts. */
const AMOUNTS = { money: 'cost', tokens: 'total_tokens', requests: 'requests' } as const;

/** SQL of the counted rows of `usage_daily u`: its amount as `amount`. The roles and the metadata are those of now. */
export function countedUsage({ unit, appliesTo, models, ...bindings }: CountedUsage) {
  const [scope, scopeBindings] = scopeOf(appliesTo);
  return {
    sql: `select u.*, u.${AMOUNTS[unit]} as amount from usage_daily u
      where u.tenant_id = :tenant and u.day between cast(:from as date) and cast(:to as date) and ${scope}
      ${models === undefined ? '' : 'and u.model like any(cast(:models as text[]))'}`,
    bindings: {
      ...bindings,
      ...scopeBindings,
      ...(models === undefined ? {} : { models: models.map(likeOf) }),
    },
  };
}

/** The largest number of rows that an answer sums: a group by key of as many takes about a second. */
export const MOST_ROWS_SUMMED = 200_000;

/** Reports whether the sums would read more rows than `MOST_ROWS_SUMMED`. */
export async function isTooMuch(q: Queryable, usage: CountedUsage): Promise<boolean> {
  const isByIndex = 'keys' in usage.appliesTo || 'users' in usage.appliesTo;
  const { sql, bindings } = countedUsage(
    isByIndex ? usage : { ...usage, appliesTo: { tenant: true }, models: undefined },
  );
  const { rows } = await q.raw<{ rows: { readonly found: number }[] }>(
    `select cast(count(*) as integer) as found from (select from (${sql}) counted limit :limit) some_rows`,
    { ...bindings, limit: MOST_ROWS_SUMMED + 1 },
  );
  return (rows[0]?.found ?? 0) > MOST_ROWS_SUMMED;
}

/** The indexes of keys and of users begin with the month. */
const IN_MONTHS = `usage_month(u.day) = any(array(
  select generate_series(usage_month(cast(:from as date)), usage_month(cast(:to as date)))))`;

function scopeOf(scope: BudgetScope): readonly [condition: string, bindings: { readonly selected?: unknown }] {
  if ('tenant' in scope) return ['true', {}];
  if ('keys' in scope) {
    return [`${IN_MONTHS} and u.key_id collate "C" = any(cast(:selected as text[]))`, { selected: scope.keys }];
  }
  if ('users' in scope) {
    return [`${IN_MONTHS} and u.user_id collate "C" = any(cast(:selected as text[]))`, { selected: scope.users }];
  }
  if ('roles' in scope) {
    return [
      `u.user_id in (select r.user_id from user_roles r join users one on one.id = r.user_id
         where one.tenant_id = :tenant and r.role_name = any(cast(:selected as text[])))`,
      { selected: scope.roles },
    ];
  }
  return [
    'u.key_id in (select k.id from api_keys k where k.tenant_id = :tenant and k.metadata @> cast(:selected as jsonb))',
    { selected: JSON.stringify(scope.metadata) },
  ];
}

/** Returns the pattern of LIKE that matches the names that the glob matches. */
function likeOf(glob: string): string {
  return glob.replaceAll(/[\\%_]/g, '\\$&').replaceAll('*', '%');
}

/** SQL for the caller whose amount a row counts in, of a budget with an amount for each key or user. See `shareOf`. */
export const SHARES = {
  all: `''`,
  key: `coalesce(nullif(u.key_id, ''), u.user_id)`,
  user: `coalesce(nullif(u.user_id, ''), u.key_id)`,
} as const;

interface UsageOfKey {
  readonly key_id: KeyId | null;
  readonly user_id: UserId | null;
  readonly spent: bigint;
}

// Sums are read as text: the cost of many callers may exceed an exact number.
type AsText<T> = { readonly [Name in keyof T]: T[Name] extends bigint ? string : T[Name] };

/** Returns the keys and users with the most usage. */
export async function topKeys(q: Queryable, usage: CountedUsage, most: number): Promise<readonly UsageOfKey[]> {
  const { sql, bindings } = countedUsage(usage);
  const { rows } = await q.raw<{ rows: AsText<UsageOfKey>[] }>(
    `select nullif(key_id, '') as key_id, nullif(user_id, '') as user_id, cast(sum(amount) as text) as spent
     from (${sql}) u group by u.key_id, u.user_id order by sum(amount) desc, u.key_id, u.user_id limit :most`,
    { ...bindings, most },
  );
  return rows.map((row) => ({ ...row, spent: BigInt(row.spent) }));
}

/** Returns the models with the most usage. */
export async function topModels(
  q: Queryable,
  usage: CountedUsage,
  most: number,
): Promise<readonly { readonly model: string; readonly spent: bigint }[]> {
  const { sql, bindings } = countedUsage(usage);
  const { rows } = await q.raw<{ rows: { model: string; spent: string }[] }>(
    `select model, cast(sum(amount) as text) as spent from (${sql}) u
     group by model order by sum(amount) desc, model limit :most`,
    { ...bindings, most },
  );
  return rows.map((row) => ({ ...row, spent: BigInt(row.spent) }));
}

/** Returns the callers with amounts of their own that have the most usage. */
export async function topCallers(
  q: Queryable,
  usage: CountedUsage,
  per: 'key' | 'user',
  most: number,
): Promise<readonly string[]> {
  const { sql, bindings } = countedUsage(usage);
  const { rows } = await q.raw<{ rows: { id: string }[] }>(
    `select ${SHARES[per]} as id from (${sql}) u group by 1 order by sum(amount) desc, 1 limit :most`,
    { ...bindings, most },
  );
  return rows.map(({ id }) => id).filter((id) => id !== '');
}

/** Returns the time zones of tenants that have one. */
export async function zonesOf(q: Queryable, tenants: readonly TenantId[]): Promise<ReadonlyMap<TenantId, string>> {
  const { rows } = await q.raw<{ rows: { id: TenantId; zone: string }[] }>(
    `select id, settings->>'timezone' as zone from tenants
     where id = any(cast(:tenants as text[])) and settings->>'timezone' is not null`,
    { tenants: [...new Set(tenants)] },
  );
  return new Map(rows.map(({ id, zone }) => [id, zone]));
}

/**
 * Returns the different sets of more than `most` budgets that select one key or one user of the tenant, without the
 * budgets of the whole tenant. Revoked keys do not count.
 */
export async function selectionsOfCallers(
  q: Queryable,
  tenant: TenantId,
  most: number,
  limit: number,
): Promise<readonly (readonly BudgetId[])[]> {
  const { rows } = await q.raw<{ rows: { budgets: readonly BudgetId[] }[] }>(
    `with budget as materialized (
       select id, applies_to from budgets where tenant_id = :tenant and enabled and not jsonb_exists(applies_to, 'tenant')
     ), of_user as materialized (
       select u.id as user_id, b.id
       from budget b cross join jsonb_array_elements_text(b.applies_to->'users') one join users u on u.id = one
       where u.tenant_id = :tenant
       union
       select u.id, b.id
       from budget b cross join jsonb_array_elements_text(b.applies_to->'roles') one
       join user_roles r on r.role_name = one join users u on u.id = r.user_id
       where u.tenant_id = :tenant
     ), of_key as (
       select k.id as key_id, b.id
       from budget b cross join jsonb_array_elements_text(b.applies_to->'keys') one join api_keys k on k.id = one
       where k.tenant_id = :tenant and k.revoked_at is null
       union all
       select k.id, b.id
       from budget b join api_keys k on k.tenant_id = :tenant and k.metadata @> (b.applies_to->'metadata')
       where k.revoked_at is null
       union all
       select k.id, o.id
       from of_user o join api_keys k on k.tenant_id = :tenant and k.user_id = o.user_id and k.revoked_at is null
     )
     select distinct budgets from (
       select array_agg(distinct id order by id) as budgets from of_user group by user_id
       union all
       select array_agg(distinct id order by id) from of_key group by key_id
     ) sets where cardinality(budgets) > :most limit :limit`,
    { tenant, most, limit },
  );
  return rows.map(({ budgets }) => budgets);
}

interface CallersOfUser {
  readonly roles: readonly RoleName[];
  /** The keys that the user owns, except revoked ones. */
  readonly keys: readonly { readonly id: KeyId; readonly metadata: Metadata }[];
}

export async function callersOfUser(q: Queryable, tenant: TenantId, user: UserId): Promise<CallersOfUser> {
  const { rows } = await q.raw<{ rows: CallersOfUser[] }>(
    `select
       array(select distinct role_name from user_roles where user_id = :user) as roles,
       coalesce((select jsonb_agg(jsonb_build_object('id', id, 'metadata', metadata)) from api_keys
         where tenant_id = :tenant and user_id = :user and revoked_at is null), '[]') as keys`,
    { tenant, user },
  );
  return rows[0] ?? { roles: [], keys: [] };
}

export interface PreviewedPeriod {
  readonly starts_on: string;
  readonly callers: number;
  readonly callers_reached: number;
  readonly reached_on: string | null;
  readonly spent: bigint;
  readonly requests: number;
  readonly blocked_requests: number;
  readonly blocked: bigint;
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
  const { rows } = await q.raw<{ rows: AsText<PreviewedPeriod>[] }>(
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
       cast(sum(spent) as text) as spent, cast(sum(requests) as bigint) as requests,
       cast(sum(blocked_requests) as bigint) as blocked_requests,
       cast(sum(greatest(0, spent - :limit)) as text) as blocked
     from shares group by starts order by starts`,
    { ...bindings, limit },
  );
  return rows.map((row) => ({ ...row, spent: BigInt(row.spent), blocked: BigInt(row.blocked) }));
}

const DAY_MS = 86_400_000;

/** Returns the last Monday until a day. */
function mondayOf(day: string): string {
  const ms = Date.parse(day);
  const sinceMonday = (new Date(ms).getUTCDay() + 6) % 7;
  return new Date(ms - sinceMonday * DAY_MS).toISOString().slice(0, 10);
}
