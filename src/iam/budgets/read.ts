/** Reads budgets, with their spent amounts. */

import type { PriceTable } from '../../decision/prices.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { orNotFound, requestedId } from '../caller/refusals.ts';
import { filterOf, type List, type ListQuery, paged, scopeOf } from '../list/list.ts';
import { type BudgetFilter, type BudgetResource, budgetResource } from './entity.ts';
import { noticedBudget } from './notices.ts';
import { countBudgets, findBudget, listBudgets } from './queries.ts';
import { breakdownOf, statesOf } from './state.ts';
import { zonesOf } from './state-queries.ts';

export interface BudgetReadParts extends Pick<AdminParts, 'db'> {
  /** The price list in force. */
  readonly priceTable: () => PriceTable;
}

export async function listBudgetsPage(
  { db: { knex }, priceTable }: BudgetReadParts,
  caller: Caller,
  query: ListQuery & BudgetFilter,
): Promise<List<BudgetResource>> {
  const filter = filterOf(query);
  const scope = scopeOf(caller);
  const page = await paged(
    caller,
    'budgets',
    query,
    (page) => listBudgets(knex, scope, filter, page),
    (row) => [row.name, row.tenant_id],
    (row) => row,
    (most) => countBudgets(knex, scope, filter, most),
  );
  const zones = await zonesOf(
    knex,
    page.data.map(({ tenant_id }) => tenant_id),
  );
  const stateOf = await statesOf(knex, page.data, (tenant) => zones.get(tenant), caller.nowMs);
  return { ...page, data: page.data.map((row) => noticedBudget(budgetResource(row, stateOf(row)), priceTable())) };
}

/** @throws Refusal `not_found` */
export async function getBudget(
  { db: { knex }, priceTable }: BudgetReadParts,
  caller: Caller,
  text: string,
): Promise<BudgetResource> {
  const row = orNotFound(await findBudget(knex, caller.tenant, requestedId('bud', text)), 'budget');
  const zone = (await zonesOf(knex, [row.tenant_id])).get(row.tenant_id);
  const stateOf = await statesOf(knex, [row], () => zone, caller.nowMs);
  const state = { ...stateOf(row), ...(await breakdownOf(knex, row, zone, caller.nowMs)) };
  return noticedBudget(budgetResource(row, state), priceTable());
}
