/** Reads what was spent of budgets: the counters of the current periods, and the usage by day behind them. */

import type { KeyId, TenantId, UserId } from '../../domain/ids.ts';
import type { BudgetScope, BudgetUnit } from '../../domain/records.ts';
import type { Queryable } from '../../store/queryable.ts';
import type { DaySpan } from '../usage/queries.ts';

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

/** The usage that counts in a budget. */
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

function scopeOf(scope: BudgetScope): readonly [condition: string, bindings: { readonly selected?: unknown }] {
  if ('tenant' in scope) return ['true', {}];
  if ('keys' in scope) return ['u.key_id = any(cast(:selected as text[]))', { selected: scope.keys }];
  if ('users' in scope) return ['u.user_id = any(cast(:selected as text[]))', { selected: scope.users }];
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
  readonly spent: number;
}

/** Returns the keys and users with the most usage. */
export async function topKeys(q: Queryable, usage: CountedUsage, most: number): Promise<readonly UsageOfKey[]> {
  const { sql, bindings } = countedUsage(usage);
  const { rows } = await q.raw<{ rows: UsageOfKey[] }>(
    `select nullif(key_id, '') as key_id, nullif(user_id, '') as user_id, cast(sum(amount) as bigint) as spent
     from (${sql}) u group by u.key_id, u.user_id order by spent desc, u.key_id, u.user_id limit :most`,
    { ...bindings, most },
  );
  return rows;
}

/** Returns the models with the most usage. */
export async function topModels(
  q: Queryable,
  usage: CountedUsage,
  most: number,
): Promise<readonly { readonly model: string; readonly spent: number }[]> {
  const { sql, bindings } = countedUsage(usage);
  const { rows } = await q.raw<{ rows: { model: string; spent: number }[] }>(
    `select model, cast(sum(amount) as bigint) as spent from (${sql}) u
     group by model order by spent desc, model limit :most`,
    { ...bindings, most },
  );
  return rows;
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
