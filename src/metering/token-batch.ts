/** What one statement asks for budgets, and what its answer teaches of each. */

import type { Budget } from './budget.ts';
import type { HoldGrant, HoldRequest } from './ports.ts';
import { needsRefill, surplusOf } from './slices.ts';

export interface HoldStatement {
  readonly requests: readonly HoldRequest[];
  /** Of each wish, in the same order. */
  readonly budgets: readonly Budget[];
}

/** How long the store's word that there is too little counts: others may give back soon, unless it is all spent. */
const REFUSES_MS = 200;
const SPENT_REFUSES_MS = 2000;

/**
 * Undefined when there is nothing to say.
 * @param slice what it should hold beside what is reserved
 * @param refills false when it only gives back
 */
export function holdRequestFor(budget: Budget, slice: number, refills: boolean, now: number): HoldRequest | undefined {
  const { tenant, period, quota } = budget;
  let requested = 0;
  if (!budget.uncertain) {
    // What was reserved without a hold, or what is too much. Nobody may reserve from what is on its way back.
    budget.change(budget.spare < 0 ? -budget.spare : -surplusOf(budget, slice));
    // Once more is needed, a whole slice is asked for; until then nothing.
    const needs = budget.waiting > 0 || (refills && needsRefill(budget, now));
    requested = needs ? Math.max(0, budget.waitingTokens + slice - budget.spare) : 0;
  }
  const { changes, confirmed } = budget;
  // Who waits is told the truth, also where enough is held and the quota was lowered meanwhile.
  if (!budget.uncertain && budget.waiting === 0 && changes === confirmed && requested === 0) return undefined;
  return { tenant, period, quota, requested, changes, confirmed };
}

export function learn(budget: Budget, request: HoldRequest, grant: HoldGrant, now: number): void {
  // What changed since the question was sent is yet to be told.
  budget.held = grant.held + budget.changes - request.changes;
  budget.confirmed = request.changes;
  budget.used = grant.used;
  budget.spent = grant.spent;
  if (grant.granted < request.requested || grant.used >= budget.quota) {
    budget.refusesUntilMs = now + (grant.spent >= budget.quota ? SPENT_REFUSES_MS : REFUSES_MS);
  }
  budget.uncertain = false;
}
