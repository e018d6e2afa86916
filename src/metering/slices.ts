/** The amounts of a rate or a budget that a process requests ahead of need, and that it keeps. */

import type { PeriodBudget } from './budget.ts';
import type { RateSubject } from './rate-subjects.ts';
import type { RateWindow } from './rate-window.ts';

/** A slice covers the demand of this time. */
export const SLICE_SPAN_MS = 2000;
/** A process sends a statement if it holds less than the demand of this time. */
export const LOW_MS = 500;
/** A statement that is sent anyway requests more if the process holds less than the demand of this time. */
export const SHORT_MS = 1250;
/** The share of a rate limit that all processes together may leave unused if one is lost or a window ends. */
const STRANDED_SHARE = 0.04;
/**
 * The slices of all processes together have at least this number of units, within the share above. Fewer would cost a
 * statement each.
 */
const FLOOR = 64;

/** The share of a quota that all processes together may hold unused. */
const UNUSED_SHARE = 0.05;
/**
 * The share of the rest of a budget. Slices become small at its end, so that the rest is available where it is requested.
 */
const LEFT_SHARE = 0.25;
/** A process keeps nothing of a budget that no check has used for this time. */
const IDLE_MS = 10_000;

/**
 * Returns the number of units that a process leases ahead of need; 0 if the limit is too small to slice. All processes
 * together lease at most `STRANDED_SHARE` of the limit, and at least the smaller of that and `FLOOR`.
 */
export function rateSliceOf(subject: RateSubject, processes: number, nowMs: number): number {
  const most = (subject.limit * STRANDED_SHARE) / processes;
  if (most < subject.lastAmount) return 0;
  const least = Math.min(most, FLOOR / processes);
  return Math.floor(Math.min(most, Math.max(least, Math.ceil(subject.demand.expectedIn(SLICE_SPAN_MS, nowMs)))));
}

/**
 * Returns the leased tokens of a window to return to the store: 0 unless the process has more than it needs and a slice,
 * so that they do not move back and forth. Requests are never returned.
 * @param needed the units that waiting checks need, and a slice
 */
export function rateSurplusOf({ subject, left }: RateWindow, needed: number, slice: number): number {
  return subject.unit === 'tokens' && left > needed + slice ? left - needed : 0;
}

/**
 * Returns the amount that a process holds ahead of need; 0 if too little is left to slice, so that each check requests
 * its own.
 */
export function budgetSliceOf(budget: PeriodBudget, processes: number, nowMs: number): number {
  const { quota, available, lastReservation } = budget;
  if (nowMs - budget.usedAtMs > IDLE_MS) return 0;
  const left = budget.left(quota) + Math.max(0, available);
  const most = Math.floor(Math.min(quota * UNUSED_SHARE, left * LEFT_SHARE) / processes);
  if (most < lastReservation) return 0;
  return Math.min(most, Math.ceil(Math.max(budget.expectedIn(SLICE_SPAN_MS, nowMs), 2 * lastReservation)));
}

/** Reports whether a statement must be sent for more. */
export function isCritical(budget: PeriodBudget, nowMs: number): boolean {
  return budget.available < Math.max(budget.lastReservation, budget.expectedIn(LOW_MS, nowMs));
}

/** Reports whether the next statement should request more. */
export function needsRefill(budget: PeriodBudget, nowMs: number): boolean {
  return budget.available < Math.max(budget.lastReservation, budget.expectedIn(SHORT_MS, nowMs));
}

/**
 * Returns the amount to return to the store: 0 unless the process has more than two slices, so that amounts do not move
 * back and forth.
 */
export function surplusOf(budget: PeriodBudget, slice: number): number {
  const available = budget.available - budget.waitingAmount;
  return available > 2 * slice ? available - slice : 0;
}
