/** The operator's commands on budgets. There is no caller whose permissions count. */

import { makeId, parseBudgetName, type TenantId } from '../../domain/ids.ts';
import type { Queryable } from '../../store/queryable.ts';
import type { Transaction } from '../../store/transaction.ts';
import type { AdminParts } from '../caller/caller.ts';
import { onlyOneNamed, orNotFound } from '../caller/refusals.ts';
import { OPERATOR } from '../change/audit-row.ts';
import { type AuditDraft, changeAsSystem, recorded } from '../change/change.ts';
import { lockTenant } from '../tenants/queries.ts';
import { noteReachedAlerts } from './alerts.ts';
import { type BudgetChanges, type BudgetResource, type BudgetRow, budgetResource, type NewBudget } from './entity.ts';
import { type BudgetRef, budgetsNamed, deleteBudgetRow, findBudget, lockBudget } from './queries.ts';
import { breakdownOf, statesOf } from './state.ts';
import { zonesOf } from './state-queries.ts';
import { readBudgetChanges, readNewBudget } from './values.ts';
import { resetRow, writeBudget, writeNewBudget } from './write.ts';

type OperatorParts = Pick<AdminParts, 'db' | 'feed' | 'flush' | 'now' | 'random'>;

/**
 * @param tenant the tenant of the budget; undefined if its name is unique
 * @throws Refusal `not_found`; `invalid_parameter` if several tenants have a budget with that name and no tenant is
 *   named
 */
export async function budgetOfName(q: Queryable, text: string, tenant: TenantId | undefined): Promise<BudgetRef> {
  const name = parseBudgetName(text);
  return onlyOneNamed(name === undefined ? [] : await budgetsNamed(q, name), 'budget', text, tenant);
}

/** Returns a budget with what was spent of it. @throws Refusal `not_found` */
export async function showAsOperator(
  q: Queryable,
  { id, tenant_id }: BudgetRef,
  nowMs: number,
): Promise<BudgetResource> {
  const row = orNotFound(await findBudget(q, tenant_id, id), 'budget');
  const zone = (await zonesOf(q, [tenant_id])).get(tenant_id);
  const stateOf = await statesOf(q, [row], () => zone, nowMs);
  return budgetResource(row, { ...stateOf(row), ...(await breakdownOf(q, row, zone, nowMs)) });
}

/** @throws Refusal as `createBudget`; `not_found` for an unknown tenant */
export async function createBudgetAsOperator(
  parts: OperatorParts,
  tenant: TenantId,
  request: NewBudget,
): Promise<BudgetResource> {
  const values = readNewBudget(request);
  const ref = { id: makeId('bud', parts.now(), parts.random(10)), tenant_id: tenant };
  return changed(parts, ref, 'create', async (trx, audit) => {
    const row = await writeNewBudget(trx, ref, values);
    return recorded(audit, undefined, budgetResource(row));
  });
}

/** @throws Refusal as `updateBudget` */
export async function updateAsOperator(
  parts: OperatorParts,
  ref: BudgetRef,
  request: BudgetChanges,
): Promise<BudgetResource> {
  return changed(parts, ref, 'update', async (trx, audit) => {
    const before = await held(trx, ref);
    const row = await writeBudget(trx, before, readBudgetChanges(before, request));
    await noteReachedAlerts(trx, [row], parts.now());
    return recorded(audit, budgetResource(before), budgetResource(row));
  });
}

/** @throws Refusal `not_found` */
export async function resetAsOperator(parts: OperatorParts, ref: BudgetRef, reason: string): Promise<BudgetResource> {
  return changed(parts, ref, 'reset', async (trx, audit) => {
    const { row, spent } = await resetRow(trx, await held(trx, ref), parts.now());
    audit.before = { spent };
    audit.after = { ...budgetResource(row), reason };
    return budgetResource(row);
  });
}

/** @throws Refusal `not_found` */
export async function deleteBudgetAsOperator(parts: OperatorParts, ref: BudgetRef): Promise<void> {
  await changed(parts, ref, 'delete', async (trx, audit) => {
    const before = await held(trx, ref);
    await deleteBudgetRow(trx, before.id);
    audit.before = budgetResource(before);
  });
}

/** Locks the tenant, so that no key and no budget is added until the change commits. */
function changed<T>(
  parts: OperatorParts,
  { id, tenant_id }: BudgetRef,
  verb: string,
  work: (trx: Transaction, audit: AuditDraft) => Promise<T>,
): Promise<T> {
  const target = { type: 'budget', id } as const;
  return changeAsSystem(parts, OPERATOR, { action: `budget.${verb}`, target }, async (trx, audit) => {
    orNotFound(await lockTenant(trx, tenant_id, 'update'), 'tenant');
    audit.tenant = tenant_id;
    return work(trx, audit);
  });
}

async function held(trx: Transaction, { id, tenant_id }: BudgetRef): Promise<BudgetRow> {
  return orNotFound(await lockBudget(trx, tenant_id, id), 'budget');
}
