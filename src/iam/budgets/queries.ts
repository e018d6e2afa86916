/** Statements on budgets. Those on what was spent are in state-queries.ts. */

import type { BudgetId, BudgetName, KeyId, RoleName, TenantId, UserId } from '../../domain/ids.ts';
import type { BudgetScope } from '../../domain/records.ts';
import {
  type Page,
  type PageRows,
  pageWithinBytes,
  scopeBinding,
  scopeCondition,
  type TenantScope,
} from '../../store/paging.ts';
import { countUpTo } from '../../store/prepared.ts';
import { jsonb, type Queryable, writtenRow } from '../../store/queryable.ts';
import { type FilterConditions, filterConditions } from '../list/filters.ts';
import { columnsOf } from '../schema/entity.ts';
import { type BudgetFilter, type BudgetRow, type BudgetValues, budget } from './entity.ts';

const budgets = (q: Queryable) => q<BudgetRow>('budgets');
const COLUMNS = columnsOf(budget);
const ORDER = 'name collate "C", tenant_id collate "C"';

/** SQL conditions on `budgets`. The bindings have the names of the filter's members. */
const CONDITIONS: FilterConditions<BudgetFilter> = {
  q: 'position(lower(:q) in lower(name)) > 0',
  unit: 'unit = :unit',
  period: 'period = :period',
  action: 'action = :action',
  enabled: 'enabled = :enabled',
};

function conditionsOf(scope: TenantScope, filter: BudgetFilter): string {
  return [scopeCondition(scope, 'tenant_id'), ...filterConditions(CONDITIONS, filter)].join(' and ');
}

/** In the words of the index `budgets_by_lexeme`. */
const LEXEMES = "user_lexemes('', '', array[unit, period, action, enabled::text], lower(name))";
/** SQL of a query for one word of a filter. The words are those of the schema, so none has a quotation mark. */
function marked(word: string): string {
  return `cast('''' || chr(1) || 'r' || ${word} || '''' as tsquery)`;
}

const LEXEME_QUERIES: FilterConditions<BudgetFilter> = {
  q: 'user_query(null, null, null, lower(cast(:q as text)))',
  unit: marked('cast(:unit as text)'),
  period: marked('cast(:period as text)'),
  action: marked('cast(:action as text)'),
  enabled: marked('cast(cast(:enabled as boolean) as text)'),
};
/** The budgets of all tenants that a filter reads in the order of the list before it reads the index of lexemes. */
const SCANNED_BUDGETS = 5000;
/** The same for a count, as a multiple of the largest number that it returns. */
const SCANNED_FOR_COUNT = 2;

interface Listing {
  readonly scope: TenantScope;
  readonly filter: BudgetFilter;
}

/** SQL of the budgets of all tenants that match, by the index of lexemes. There is at least one filter. */
function byLexeme(filter: BudgetFilter): string {
  const queries = filterConditions(LEXEME_QUERIES, filter);
  // No other index may take the place of this one, so the planner may not look into the other conditions.
  return `select * from budgets where ${LEXEMES} @@ (select ${queries.join(' && ')})
    and (${conditionsOf({ kind: 'every' }, filter)}) is true offset 0`;
}

/** Reports whether a list reads more budgets than those of one tenant to find those that match. */
function isWide({ scope, filter }: Listing): boolean {
  return scope.kind === 'every' && filterConditions(CONDITIONS, filter).length > 0;
}

/** Lists budgets by name, then tenant. */
export async function listBudgets(
  q: Queryable,
  scope: TenantScope,
  filter: BudgetFilter,
  page: Page,
): Promise<PageRows<BudgetRow>> {
  const after = `(${ORDER}) > (:name, :after)`;
  const conditions = conditionsOf(scope, filter);
  if (!isWide({ scope, filter })) return pageOf(q, { scope, filter }, page, 'budgets', `${conditions} and ${after}`);
  const next = `(select * from budgets where ${after} order by ${ORDER} limit ${SCANNED_BUDGETS}) next`;
  const scanned = await pageOf(q, { scope, filter }, page, next, conditions);
  return scanned.more ? scanned : pageOf(q, { scope, filter }, page, `(${byLexeme(filter)}) found`, after);
}

async function pageOf(
  q: Queryable,
  { scope, filter }: Listing,
  page: Page,
  from: string,
  where: string,
): Promise<PageRows<BudgetRow>> {
  const [name = '', after = ''] = page.after ?? [];
  const rows = `select ${COLUMNS.join(', ')}, octets from ${from} where ${where} order by ${ORDER} limit :take`;
  return pageWithinBytes(q, { rows, order: ORDER }, { ...scopeBinding(scope), ...filter, name, after }, page);
}

export async function countBudgets(
  q: Queryable,
  scope: TenantScope,
  filter: BudgetFilter,
  most: number,
): Promise<number> {
  const conditions = conditionsOf(scope, filter);
  const bindings = { ...scopeBinding(scope), ...filter };
  const isOfWideList = isWide({ scope, filter });
  const from = isOfWideList ? `(select * from budgets limit ${SCANNED_FOR_COUNT * most}) some_rows` : 'budgets';
  const counted = await countUpTo(q, { sql: `select from ${from} where ${conditions}`, bindings }, most);
  return isOfWideList && counted < most ? countUpTo(q, { sql: byLexeme(filter), bindings }, most) : counted;
}

export function findBudget(q: Queryable, tenant: TenantId, id: BudgetId): Promise<BudgetRow | undefined> {
  return budgets(q).where({ tenant_id: tenant, id }).first(COLUMNS);
}

/** Locks the budget against other changes. Bookings that raise its alerts do not wait. */
export function lockBudget(q: Queryable, tenant: TenantId, id: BudgetId): Promise<BudgetRow | undefined> {
  return budgets(q).where({ tenant_id: tenant, id }).forNoKeyUpdate().first(COLUMNS);
}

export interface BudgetRef {
  readonly id: BudgetId;
  readonly tenant_id: TenantId;
}

export async function budgetsNamed(q: Queryable, name: BudgetName): Promise<readonly BudgetRef[]> {
  return budgets(q).where({ name }).orderBy('tenant_id').limit(1000).select('id', 'tenant_id');
}

/** Returns the tenant's budgets that are in force, in the order of names. */
export async function enabledBudgets(q: Queryable, tenant: TenantId): Promise<readonly BudgetRow[]> {
  return budgets(q).where({ tenant_id: tenant, enabled: true }).orderByRaw('name collate "C"').select(COLUMNS);
}

/** Counts the tenant's budgets, those in force, and the octets of all. */
export async function sizeOfBudgets(
  q: Queryable,
  tenant: TenantId,
): Promise<{ readonly all: number; readonly enabled: number; readonly octets: number }> {
  const { rows } = await q.raw<{ rows: { all: number; enabled: number; octets: number }[] }>(
    `select count(*)::int as all, count(*) filter (where enabled)::int as enabled, coalesce(sum(octets), 0)::int as octets
     from budgets where tenant_id = :tenant`,
    { tenant },
  );
  return rows[0] ?? { all: 0, enabled: 0, octets: 0 };
}

function written(q: Queryable, { applies_to, alerts, ...columns }: BudgetValues): Record<string, unknown> {
  return { ...columns, applies_to: jsonb(q, applies_to), alerts: jsonb(q, alerts) };
}

/** Throws an error of the constraint `budgets_by_name` if the name is taken. */
export async function insertBudget(
  q: Queryable,
  { id, tenant_id }: BudgetRef,
  values: BudgetValues,
): Promise<BudgetRow> {
  return writtenRow(await q('budgets').insert({ id, tenant_id, ...written(q, values) }, [...COLUMNS]));
}

/** Changes a locked budget. Throws like `insertBudget`. @param newAmount begins a new amount */
export async function updateBudgetRow(
  q: Queryable,
  id: BudgetId,
  values: BudgetValues,
  newAmount: boolean,
): Promise<BudgetRow> {
  return writtenRow(
    await q('budgets')
      .where({ id })
      .update(
        {
          ...written(q, values),
          ...(newAmount ? { epoch: q.raw('epoch + 1') } : {}),
          updated_at: q.raw('clock_timestamp()'),
        },
        [...COLUMNS],
      ),
  );
}

/** Begins a new amount of a locked budget. */
export async function resetBudgetRow(q: Queryable, id: BudgetId): Promise<BudgetRow> {
  return writtenRow(
    await q('budgets')
      .where({ id })
      .update({ epoch: q.raw('epoch + 1'), updated_at: q.raw('clock_timestamp()') }, [...COLUMNS]),
  );
}

export async function deleteBudgetRow(q: Queryable, id: BudgetId): Promise<void> {
  await budgets(q).where({ id }).delete();
}

/** Returns the keys, users or custom roles of a scope that do not exist in the tenant. */
export async function missingOf(
  q: Queryable,
  tenant: TenantId,
  scope: BudgetScope,
): Promise<ReadonlySet<KeyId | UserId | RoleName>> {
  const missing = async <T extends string>(table: string, column: string, names: readonly T[]): Promise<Set<T>> => {
    const { rows } = await q.raw<{ rows: { name: T }[] }>(
      `select name from unnest(cast(:names as text[])) as wanted (name)
       where not exists (select from ${table} t where t.tenant_id = :tenant and t.${column} = wanted.name)`,
      { names: [...names], tenant },
    );
    return new Set(rows.map(({ name }) => name));
  };
  if ('keys' in scope) return missing('api_keys', 'id', scope.keys);
  if ('users' in scope) return missing('users', 'id', scope.users);
  return 'roles' in scope ? missing('roles', 'name', scope.roles) : new Set();
}
