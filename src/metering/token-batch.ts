/** What one statement asks for budgets, and what its answer teaches of each. */

import type { Budget } from './budget.ts';
import type { TokenAsk, TokenGrant } from './ports.ts';
import { runsShort, surplusOf } from './slices.ts';

export interface TokenBatch {
  readonly asks: readonly TokenAsk[];
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
export function askFor(budget: Budget, slice: number, refills: boolean, now: number): TokenAsk | undefined {
  const { tenant, period, quota } = budget;
  let want = 0;
  if (!budget.uncertain) {
    // What was reserved without a hold, or what is too much. Nobody may reserve from what is on its way back.
    budget.change(budget.spare < 0 ? -budget.spare : -surplusOf(budget, slice));
    // Once more is needed, a whole slice is asked for; until then nothing.
    const needs = budget.waiting > 0 || (refills && runsShort(budget, now));
    want = needs ? Math.max(0, budget.waitingTokens + slice - budget.spare) : 0;
  }
  const { changes, confirmed } = budget;
  // Who waits is told the truth, also where enough is held and the quota was lowered meanwhile.
  if (!budget.uncertain && budget.waiting === 0 && changes === confirmed && want === 0) return undefined;
  return { tenant, period, quota, want, changes, confirmed };
}

export function learn(budget: Budget, ask: TokenAsk, grant: TokenGrant, now: number): void {
  // What changed since the question was sent is yet to be told.
  budget.held = grant.held + budget.changes - ask.changes;
  budget.confirmed = ask.changes;
  budget.used = grant.used;
  budget.spent = grant.spent;
  if (grant.granted < ask.want || grant.used >= budget.quota) {
    budget.refusesUntilMs = now + (grant.spent >= budget.quota ? SPENT_REFUSES_MS : REFUSES_MS);
  }
  budget.uncertain = false;
}
