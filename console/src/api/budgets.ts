/** Budgets as lists and editors need them. */

import type { Budget } from '../../../client/index.ts';
import { type List, type ListQuery, useList } from './list.ts';
import { type Read, tagged, useOne } from './one.ts';
import { useTenant } from './session.ts';

const PAGE = 50;
const BUDGETS = '/v1/iam/budgets';
const BUDGET = '/v1/iam/budgets/{id}';

/** A list of the tenant's budgets, a page at a time. */
export function useBudgets(filter: ListQuery<typeof BUDGETS>): List<Budget> {
  const { id: tenant, client } = useTenant();
  return useList<typeof BUDGETS>([tenant, 'budgets', filter], (cursor, signal) =>
    client.request('GET', BUDGETS, {
      query: { limit: PAGE, ...filter, cursor, ...(cursor === undefined ? { count: true } : {}) },
      signal,
    }),
  );
}

export const readBudget: Read<Budget> = ({ client }, id, signal) =>
  tagged(client.send('GET', BUDGET, { path: { id }, signal }));

export function useBudget(id: string) {
  return useOne('budget', id, readBudget);
}
