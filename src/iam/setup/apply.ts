/**
 * Making the database be as a set-up says: for whoever runs the server, so no caller is asked. First a plan is made to be looked at;
 * then it is done whole, in one transaction, or not at all.
 */

import type { Database } from '../../store/database.ts';
import { brokenConstraint } from '../../store/faults.ts';
import { transaction } from '../../store/transaction.ts';
import { OPERATOR } from '../change/audit-row.ts';
import { changeAsSystem } from '../change/change.ts';
import { type PlanAction, sameActions } from './action.ts';
import { type Plan, planSetup, type SetupOptions } from './plan.ts';
import { lockSetup } from './queries.ts';
import type { Setup } from './setup.ts';
import { runActions, type SetupToken } from './write.ts';

export interface SetupParts {
  readonly db: Database;
  /** Bytes from a secure source. */
  readonly random: (size: number) => Uint8Array;
}

/**
 * What applying would do now.
 * @throws Refusal `quota_exceeded`, `last_admin`, `would_lock_out`, `in_use`
 */
export function previewSetup({ db }: SetupParts, setup: Setup, options: SetupOptions): Promise<Plan> {
  return transaction(db, async (trx) => {
    // Nothing is locked, so only one snapshot keeps the parts of the plan consistent with each other.
    await trx.raw('set transaction isolation level repeatable read, read only');
    return planSetup(trx, setup, options, false);
  });
}

export type Applied =
  | { readonly kind: 'applied'; readonly setupTokens: readonly SetupToken[] }
  /** The plan is not what it was when it was shown; nothing was written. */
  | { readonly kind: 'changed' };

/** Ends the transaction without a trace. */
class PlanChanged extends Error {
  override readonly name = 'PlanChanged';
}

/** Somebody else took the name first. */
const TAKEN: ReadonlySet<string | undefined> = new Set([
  'users_email_key',
  'roles_pkey',
  'tenants_pkey',
  'policies_by_name',
]);

/**
 * Does what was shown, each action with its audit row, and all of it in one transaction. Of several at once one is done after the other.
 * @param shown the actions that were agreed to
 * @throws Refusal like `previewSetup`
 */
export async function applySetup(
  parts: SetupParts,
  setup: Setup,
  options: SetupOptions & { readonly setupTokens: boolean },
  shown: readonly PlanAction[],
): Promise<Applied> {
  // There is no cache in this process that would have to follow.
  const uncached = { db: parts.db, feed: { catchUp: async () => undefined }, flush: () => undefined };
  try {
    const setupTokens = await changeAsSystem(uncached, OPERATOR, { action: 'setup.apply' }, async (trx, audit) => {
      await lockSetup(trx);
      const plan = await planSetup(trx, setup, options, true);
      if (plan.kind === 'errors' || !sameActions(plan.actions, shown)) throw new PlanChanged();
      audit.after = counts(plan.actions);
      return runActions(trx, plan.actions, { ...options, random: parts.random });
    });
    return { kind: 'applied', setupTokens };
  } catch (error) {
    if (error instanceof PlanChanged || TAKEN.has(brokenConstraint(error))) return { kind: 'changed' };
    throw error;
  }
}

/** How many actions there are of each kind. */
export function counts(actions: readonly PlanAction[]): {
  readonly create: number;
  readonly change: number;
  readonly delete: number;
} {
  const of = (verb: PlanAction['verb']): number => actions.filter((action) => action.verb === verb).length;
  return { create: of('create'), change: of('change'), delete: of('delete') };
}
