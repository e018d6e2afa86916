/** /v1/iam/budgets */

import { Type } from 'typebox';
import { shows } from '../../http/answers.ts';
import { callerEndpoint, type Endpoint } from '../../http/endpoint.ts';
import { resourceEndpoints } from '../../http/resource-endpoints.ts';
import type { AdminParts } from '../caller/caller.ts';
import { closed, countedPage, tenantFilter } from '../schema/schemas.ts';
import { budgetChanges, budgetFilter, budgetReset, newBudget, ShownBudget } from './entity.ts';
import { budgetPreview, previewBudget } from './preview.ts';
import { type BudgetReadParts, getBudget, listBudgetsPage } from './read.ts';
import { createBudget, deleteBudget, resetBudget, updateBudget } from './write.ts';

const listing = Type.Object({ ...countedPage, ...tenantFilter, ...budgetFilter.properties }, closed);

const budgets = resourceEndpoints({
  path: '/v1/iam/budgets',
  param: 'id',
  type: 'budget',
  nouns: ['budget', 'budgets'],
  schema: ShownBudget,
  permission: 'admin:budgets',
});

export function budgetEndpoints(parts: AdminParts & BudgetReadParts): readonly Endpoint[] {
  return [
    budgets.list({
      operationId: 'listBudgets',
      summary: 'List budgets, with what was spent of the amounts that callers share.',
      permission: 'usage:read',
      query: listing,
      run: ({ caller, query }) => listBudgetsPage(parts, caller, query),
    }),
    budgets.create({
      operationId: 'createBudget',
      summary: 'Create a budget: a limit of what callers may spend in a period.',
      body: newBudget,
      refusals: ['already_exists', 'quota_exceeded'],
      run: ({ caller, body }) => createBudget(parts, caller, body),
    }),
    budgets.get({
      operationId: 'getBudget',
      summary: 'Get a budget, with what was spent of it, and by which keys, users and models.',
      permission: 'usage:read',
      run: ({ caller }, id) => getBudget(parts, caller, id),
    }),
    budgets.update({
      operationId: 'updateBudget',
      summary:
        'Update a budget: the members that are present. A limit applies at once. Another unit, period, time zone or `per` begins a new amount.',
      body: budgetChanges,
      refusals: ['already_exists', 'quota_exceeded'],
      run: ({ caller, body }, id) => updateBudget(parts, caller, id, body),
    }),
    budgets.delete({
      operationId: 'deleteBudget',
      summary: 'Delete a budget.',
      run: ({ caller }, id) => deleteBudget(parts, caller, id),
    }),
    budgets.action('reset', {
      operationId: 'resetBudget',
      summary: 'Begin a new amount in the current period. The audit log keeps the reason.',
      body: budgetReset,
      run: ({ caller, body }, id) => resetBudget(parts, caller, id, body.reason),
    }),
    callerEndpoint({
      method: 'POST',
      path: '/v1/iam/budgets/preview',
      operationId: 'previewBudget',
      summary: "Show what a budget would have done in the last full month, by that month's usage. Nothing is stored.",
      permission: 'admin:budgets',
      onlyReads: true,
      body: newBudget,
      answers: shows('The periods of the month, and what would have been beyond the limit.', budgetPreview),
      run: ({ caller, body }) => previewBudget(parts, caller, body),
    }),
  ];
}
