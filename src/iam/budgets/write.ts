/** Creates, updates, resets and deletes budgets. */

import { isDeepStrictEqual } from 'node:util';
import { MAX_BUDGETS_OF_TENANT } from '../../decision/budgets.ts';
import { Refusal } from '../../domain/errors.ts';
import { makeId, type TenantId } from '../../domain/ids.ts';
import type { FieldError } from '../../domain/problem-details.ts';
import type { BudgetScope } from '../../domain/records.ts';
import { isBuiltinRole } from '../../domain/roles.ts';
import { brokenConstraint } from '../../store/faults.ts';
import type { Queryable } from '../../store/queryable.ts';
import type { Transaction } from '../../store/transaction.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { orNotFound, requestedId, tenantGone, throwIfInvalid } from '../caller/refusals.ts';
import { change, recorded } from '../change/change.ts';
import { lockTenant } from '../tenants/queries.ts';
import { noteReachedAlerts } from './alerts.ts';
import { refuseManyOfRequest } from './applying.ts';
import {
  type BudgetChanges,
  type BudgetResource,
  type BudgetRow,
  type BudgetValues,
  budgetResource,
  type NewBudget,
  type SpentState,
} from './entity.ts';
import {
  type BudgetRef,
  deleteBudgetRow,
  insertBudget,
  lockBudget,
  missingOf,
  resetBudgetRow,
  sizeOfBudgets,
  updateBudgetRow,
} from './queries.ts';
import { statesOf } from './state.ts';
import { zonesOf } from './state-queries.ts';
import { beginsNewAmount, readBudgetChanges, readNewBudget } from './values.ts';

/** The largest number of octets of the budgets of a tenant. Every gate keeps them in memory. */
const MAX_OCTETS = 1024 * 1024;

/** @throws Refusal `invalid_field`, `already_exists`, `quota_exceeded` */
export async function createBudget(parts: AdminParts, caller: Caller, request: NewBudget): Promise<BudgetResource> {
  const values = readNewBudget(request);
  const id = makeId('bud', caller.nowMs, parts.random(10));
  const target = { type: 'budget', id } as const;
  return change(parts, caller, { action: 'budget.create', target }, async ({ trx, caller, audit }) => {
    if ((await lockTenant(trx, caller.tenant, 'share')) === undefined) throw tenantGone();
    const row = await writeNewBudget(trx, { id, tenant_id: caller.tenant }, values);
    return recorded(audit, undefined, budgetResource(row));
  });
}

/** Changes the members that are present. @throws Refusal as `createBudget`; `not_found` */
export async function updateBudget(
  parts: AdminParts,
  caller: Caller,
  text: string,
  request: BudgetChanges,
): Promise<BudgetResource> {
  const target = { type: 'budget', id: text } as const;
  const entry = { action: 'budget.update', target } as const;
  return change(parts, caller, entry, async ({ trx, caller, audit, checkPreconditions }) => {
    const before = await holdBudget(trx, caller.tenant, text);
    checkPreconditions(budgetResource(before));
    const values = readBudgetChanges(before, request);
    const row = await writeBudget(trx, before, values);
    await noteReachedAlerts(trx, [row], caller.nowMs);
    return recorded(audit, budgetResource(before), budgetResource(row));
  });
}

/** Begins a new amount. Requests in progress are booked to the former one. @throws Refusal `not_found` */
export async function resetBudget(
  parts: AdminParts,
  caller: Caller,
  text: string,
  reason: string,
): Promise<BudgetResource> {
  const target = { type: 'budget', id: text } as const;
  const entry = { action: 'budget.reset', target } as const;
  return change(parts, caller, entry, async ({ trx, caller, audit, checkPreconditions }) => {
    const before = await holdBudget(trx, caller.tenant, text);
    checkPreconditions(budgetResource(before));
    const { spent, row } = await resetRow(trx, before, caller.nowMs);
    audit.before = { spent };
    audit.after = { ...budgetResource(row), reason };
    return budgetResource(row);
  });
}

/** Begins a new amount of a locked budget. @returns what was spent of the former one; null if callers have their own */
export async function resetRow(
  trx: Transaction,
  before: BudgetRow,
  nowMs: number,
): Promise<{ readonly row: BudgetRow; readonly spent: SpentState['spent'] }> {
  const zones = await zonesOf(trx, [before.tenant_id]);
  const { spent } = (await statesOf(trx, [before], (tenant) => zones.get(tenant), nowMs))(before);
  return { row: await resetBudgetRow(trx, before.id), spent };
}

/** @throws Refusal `not_found` */
export async function deleteBudget(parts: AdminParts, caller: Caller, text: string): Promise<void> {
  const target = { type: 'budget', id: text } as const;
  const entry = { action: 'budget.delete', target } as const;
  await change(parts, caller, entry, async ({ trx, caller, audit, checkPreconditions }) => {
    const before = await holdBudget(trx, caller.tenant, text);
    checkPreconditions(budgetResource(before));
    await deleteBudgetRow(trx, before.id);
    audit.before = budgetResource(before);
  });
}

/** Locks a budget of the tenant for a change. @throws Refusal `not_found` */
async function holdBudget(trx: Transaction, tenant: TenantId, text: string): Promise<BudgetRow> {
  return orNotFound(await lockBudget(trx, tenant, requestedId('bud', text)), 'budget');
}

/**
 * Call it while no other transaction can add a budget or a caller to the tenant.
 * @param refuseMany checks the budgets that count one request. A caller that writes several budgets checks at the end
 * @throws Refusal `invalid_field`, `already_exists`, `quota_exceeded`
 */
export async function writeNewBudget(
  trx: Transaction,
  ref: BudgetRef,
  values: BudgetValues,
  refuseMany = refuseManyOfRequest,
): Promise<BudgetRow> {
  throwIfInvalid(await unknownInScope(trx, ref.tenant_id, values.applies_to, undefined));
  const row = await insertBudget(trx, ref, values).catch(refuseTaken);
  await refuseQuotas(trx, row.tenant_id);
  if (row.enabled) await refuseMany(trx, row.tenant_id);
  return row;
}

/** Writes the new values of a locked budget. @throws Refusal like `writeNewBudget` */
export async function writeBudget(
  trx: Transaction,
  before: BudgetRow,
  values: BudgetValues,
  refuseMany = refuseManyOfRequest,
): Promise<BudgetRow> {
  throwIfInvalid(await unknownInScope(trx, before.tenant_id, values.applies_to, before.applies_to));
  const row = await updateBudgetRow(trx, before.id, values, beginsNewAmount(before, values)).catch(refuseTaken);
  await refuseQuotas(trx, row.tenant_id);
  if (row.enabled && maySelectMore(before, values)) await refuseMany(trx, row.tenant_id);
  return row;
}

function maySelectMore(before: BudgetValues, after: BudgetValues): boolean {
  const selection = ({ enabled, applies_to, models }: BudgetValues) => [enabled, applies_to, models];
  return !isDeepStrictEqual(selection(before), selection(after));
}

async function refuseQuotas(trx: Transaction, tenant: TenantId): Promise<void> {
  const { all, octets } = await sizeOfBudgets(trx, tenant);
  if (all > MAX_BUDGETS_OF_TENANT) {
    throw new Refusal(
      'quota_exceeded',
      `The tenant already has ${MAX_BUDGETS_OF_TENANT} budgets, which is the limit. Delete one first.`,
    );
  }
  if (octets > MAX_OCTETS) {
    throw new Refusal(
      'quota_exceeded',
      'The budgets of a tenant may use 1 MiB in total, and this change would exceed it. Select keys by metadata or users by roles, or delete budgets.',
    );
  }
}

/**
 * Returns an error for each key, user and role of a scope that does not exist in the tenant. A scope may keep what was
 * deleted after the scope was written.
 */
export async function unknownInScope(
  q: Queryable,
  tenant: TenantId,
  scope: BudgetScope,
  before: BudgetScope | undefined,
): Promise<readonly FieldError[]> {
  const kept = new Set<string>(before === undefined ? [] : namesOf(before));
  const missing = await missingOf(q, tenant, scope);
  return namesOf(scope).flatMap((name, i) =>
    !missing.has(name) || kept.has(name) || ('roles' in scope && isBuiltinRole(name))
      ? []
      : [{ path: `/applies_to/${Object.keys(scope)[0]}/${i}`, message: `${name} does not exist in the tenant.` }],
  );
}

function namesOf(scope: BudgetScope) {
  if ('keys' in scope) return scope.keys;
  if ('users' in scope) return scope.users;
  return 'roles' in scope ? scope.roles : [];
}

function refuseTaken(error: unknown): never {
  if (brokenConstraint(error) !== 'budgets_by_name') throw error;
  throw new Refusal('already_exists', 'A budget with this name already exists. Choose another name.', {
    param: 'name',
  });
}
