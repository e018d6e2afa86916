/** How much of a rate or a budget a process asks for ahead of need, and how much of it keeps. */

import type { Budget } from './budget.ts';
import type { RateSubject } from './rate-subject.ts';

/** How far ahead a slice is meant to last. */
export const SLICE_MS = 2000;
/** More is asked for when less is left than this needs; and when a statement leaves anyway, also where it is less than that. */
export const LOW_MS = 500;
export const SHORT_MS = 1250;
/** Of a rate, what may lie unused in all processes together when one is lost or a window ends. */
const STRANDED_SHARE = 0.04;
/** Requests that the slices of all processes together have at least, if that is within the share above: fewer would cost a statement each. */
const FLOOR = 64;

/** Of a quota, what may lie unused in all processes together. */
const SPARE_SHARE = 0.05;
/** Of what is left of a budget, the same: towards its end slices become small, so that the last tokens are found where they are asked for. */
const LEFT_SHARE = 0.25;
/** Whoever asked for nothing for so long keeps nothing. */
const IDLE_MS = 10_000;

/**
 * Returns how many requests of a rate a process leases ahead of need; 0 for a limit too small to slice. All processes together lease at
 * most `STRANDED_SHARE` of the limit, and at least the smaller of that and `FLOOR`.
 */
export function rateSliceOf(subject: RateSubject, processes: number, nowMs: number): number {
  const most = (subject.limit * STRANDED_SHARE) / processes;
  const least = Math.min(most, FLOOR / processes);
  return Math.floor(Math.min(most, Math.max(least, Math.ceil(subject.demand.within(SLICE_MS, nowMs)))));
}

/** Tokens; 0 where there is too little to slice: then each check takes what it needs. */
export function sliceOf(budget: Budget, processes: number, nowMs: number): number {
  if (nowMs - budget.requestedAtMs > IDLE_MS) return 0;
  const left = budget.left(budget.quota) + Math.max(0, budget.spare);
  const most = Math.floor(Math.min(budget.quota * SPARE_SHARE, left * LEFT_SHARE) / processes);
  if (most < budget.lastReservation) return 0;
  return Math.min(most, Math.ceil(Math.max(budget.demand.within(SLICE_MS, nowMs), 2 * budget.lastReservation)));
}

/** Whether more will be needed before long. */
export function isCritical(budget: Budget, nowMs: number): boolean {
  return budget.spare < Math.max(budget.lastReservation, budget.demand.within(LOW_MS, nowMs));
}

/** Whether it is worth asking for more with the next statement. */
export function needsRefill(budget: Budget, nowMs: number): boolean {
  return budget.spare < Math.max(budget.lastReservation, budget.demand.within(SHORT_MS, nowMs));
}

/** What may be given back: more than is kept for a while, so that it does not go to and fro. */
export function surplusOf(budget: Budget, slice: number): number {
  const spare = budget.spare - budget.waitingTokens;
  return spare > 2 * slice ? spare - slice : 0;
}
