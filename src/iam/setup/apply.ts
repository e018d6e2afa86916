/**
 * Applies a setup for the operator. There is no caller whose permissions count. The operator first sees a plan. Then
 * all of its actions run in one transaction, or none.
 */

import type { TenantId } from '../../domain/ids.ts';
import type { Database } from '../../store/database.ts';
import { brokenConstraint } from '../../store/faults.ts';
import { type Transaction, transaction } from '../../store/transaction.ts';
import { noteReachedAlerts } from '../budgets/alerts.ts';
import { refuseManyOfRequest } from '../budgets/applying.ts';
import type { BudgetRow } from '../budgets/entity.ts';
import { enabledBudgets } from '../budgets/queries.ts';
import { zonesOf } from '../budgets/state-queries.ts';
import { refusedByStore } from '../caller/refusals.ts';
import { OPERATOR } from '../change/audit-row.ts';
import { changeAsSystem } from '../change/change.ts';
import { noteQuotaAlerts } from '../usage/limit-queries.ts';
import { momentOf } from '../usage/period.ts';
import { type PlanAction, sameActions } from './action.ts';
import { type Plan, planSetup, type SetupOptions } from './plan.ts';
import { lockSetup } from './queries.ts';
import type { Setup } from './read.ts';
import { runActions, type SetupToken, type WriteOptions } from './write.ts';

export interface SetupParts {
  readonly db: Database;
  /** Bytes from a secure source. */
  readonly random: (size: number) => Uint8Array;
}

/**
 * Plans the setup against the current state. It runs the actions and rolls them back, so that the plan is refused as the
 * run would be.
 * @throws Refusal `quota_exceeded`, `last_admin`, `would_lock_out`, `in_use`
 */
export function previewSetup({ db, random }: SetupParts, setup: Setup, options: SetupOptions): Promise<Plan> {
  return transaction(db, async (trx) => {
    // Without locks, only a snapshot keeps the parts of the plan consistent with each other.
    await trx.raw('set transaction isolation level repeatable read');
    const plan = await planSetup(trx, setup, options, false);
    if (plan.kind === 'errors') return plan;
    await trx.raw('savepoint dry_run');
    await run(trx, plan, { setupTokens: false, ...options, random }).catch((error) => {
      if (!TAKEN.has(brokenConstraint(error))) throw refusedByStore(error);
    });
    await trx.raw('rollback to savepoint dry_run');
    return plan;
  });
}

export type Applied =
  | { readonly kind: 'applied'; readonly setupTokens: readonly SetupToken[] }
  /** The plan has changed since the operator saw it. Nothing was written. */
  | { readonly kind: 'changed' };

/** Rolls the transaction back. */
class PlanChanged extends Error {
  override readonly name = 'PlanChanged';
}

/** The constraints that fail if another transaction took a name first. */
const TAKEN: ReadonlySet<string | undefined> = new Set([
  'users_email_key',
  'roles_pkey',
  'tenants_pkey',
  'policies_by_name',
]);

/**
 * Runs the planned actions and records each in the audit log, in one transaction. Setups are applied one after the
 * other.
 * @param shown the actions that the operator accepted
 * @throws Refusal like `previewSetup`
 */
export async function applySetup(
  parts: SetupParts,
  setup: Setup,
  options: SetupOptions & { readonly setupTokens: boolean },
  shown: readonly PlanAction[],
): Promise<Applied> {
  // This process has no cache.
  const uncached = { db: parts.db, feed: { catchUp: async () => undefined }, flush: () => undefined };
  try {
    const setupTokens = await changeAsSystem(uncached, OPERATOR, { action: 'setup.apply' }, async (trx, audit) => {
      await lockSetup(trx);
      const plan = await planSetup(trx, setup, options, true);
      if (plan.kind === 'errors' || !sameActions(plan.actions, shown)) throw new PlanChanged();
      audit.after = counts(plan.actions);
      return run(trx, plan, { ...options, random: parts.random });
    });
    return { kind: 'applied', setupTokens };
  } catch (error) {
    if (error instanceof PlanChanged || TAKEN.has(brokenConstraint(error))) return { kind: 'changed' };
    throw error;
  }
}

async function run(
  trx: Transaction,
  { actions, parts }: Extract<Plan, { kind: 'plan' }>,
  options: WriteOptions,
): Promise<readonly SetupToken[]> {
  const tokens = await runActions(trx, actions, options);
  const changed: BudgetRow[] = [];
  const tenants: TenantId[] = [];
  for (const { wanted, tenant, users, budgets } of parts.tenants) {
    if (users.length + budgets.length > 0) await refuseManyOfRequest(trx, wanted.key);
    if (budgets.length > 0) changed.push(...(await enabledBudgets(trx, wanted.key)));
    if (tenant.length > 0) tenants.push(wanted.key);
  }
  // At the end, because a booking that reaches the same alert waits for this transaction.
  const zones = await zonesOf(trx, tenants);
  for (const id of tenants) await noteQuotaAlerts(trx, id, momentOf(zones.get(id), options.nowMs).period);
  await noteReachedAlerts(trx, changed, options.nowMs);
  return tokens;
}

/** Counts the actions by verb. */
export function counts(actions: readonly PlanAction[]): {
  readonly create: number;
  readonly change: number;
  readonly delete: number;
} {
  const of = (verb: PlanAction['verb']): number => actions.filter((action) => action.verb === verb).length;
  return { create: of('create'), change: of('change'), delete: of('delete') };
}
