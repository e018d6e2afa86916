/** Budgets as lists and editors need them. */

import { useQuery } from '@tanstack/react-query';
import type { Budget } from '../../../client/index.ts';
import type { Tagged } from './edit.ts';
import { type List, type ListQuery, useList } from './list.ts';
import { type Tenant, useTenant } from './session.ts';

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

/** Reads one budget with the ETag that an edit sends. */
export async function readBudget({ client }: Tenant, id: string, signal?: AbortSignal): Promise<Tagged<Budget>> {
  const { data, etag } = await client.send('GET', BUDGET, { path: { id }, signal });
  return { data, etag };
}

export function useBudget(id: string) {
  const tenant = useTenant();
  return useQuery({
    queryKey: [tenant.id, 'budget', id],
    queryFn: ({ signal }) => readBudget(tenant, id, signal),
  });
}
