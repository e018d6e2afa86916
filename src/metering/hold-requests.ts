/** The requests of one statement for holds, and the effect of its grants on the budgets. */

import type { PeriodBudget } from './budget.ts';
import type { HoldGrant, HoldRequest } from './ports.ts';
import { needsRefill, surplusOf } from './slices.ts';

export interface HoldRequests {
  readonly requests: readonly HoldRequest[];
  /** The budget of each request, in the same order. */
  readonly budgets: readonly PeriodBudget[];
}

/**
 * The time for which a report that too little is left counts. Others may return some soon, unless all is spent.
 */
const REFUSES_MS = 200;
const SPENT_REFUSES_MS = 2000;

/**
 * Returns undefined if there is nothing to request or to report.
 * @param slice the amount that the process should hold in addition to the reserved one
 * @param refills false if the process only returns amounts
 */
export function holdRequestFor(
  budget: PeriodBudget,
  slice: number,
  refills: boolean,
  now: number,
): HoldRequest | undefined {
  const { tenant, period, quota } = budget;
  let requested = 0;
  if (!budget.uncertain) {
    // Reports an amount that was reserved without a hold, or returns a surplus. No check may reserve an amount that is
    // being returned.
    budget.change(budget.available < 0 ? -budget.available : -surplusOf(budget, slice));
    // Requests a whole slice if more is needed, otherwise nothing.
    const needs = budget.waiting > 0 || (refills && needsRefill(budget, now));
    // No more than the limit, because the store could not read a sum of many large amounts.
    requested = needs ? Math.min(quota, Math.max(0, budget.waitingAmount + slice - budget.available)) : 0;
  }
  const { changes, confirmed } = budget;
  // A waiting check needs the store's answer even if enough is held, because the quota may have been lowered.
  if (!budget.uncertain && budget.waiting === 0 && changes === confirmed && requested === 0) return undefined;
  return { tenant, period, quota, requested, changes, confirmed };
}

export function applyHoldGrant(budget: PeriodBudget, request: HoldRequest, grant: HoldGrant, now: number): void {
  // The store does not know changes that were made after the statement was sent.
  budget.held = grant.held + budget.changes - request.changes;
  budget.confirmed = request.changes;
  budget.used = grant.used;
  budget.spent = grant.spent;
  // The store counts an amount twice that it booked before the statement and that was released here after it was sent.
  const isExact = budget.changes >= request.changes;
  if (isExact && (grant.granted < request.requested || grant.used >= budget.quota)) {
    budget.refusesUntilMs = now + (grant.spent >= budget.quota ? SPENT_REFUSES_MS : REFUSES_MS);
  }
  budget.uncertain = false;
}
