/** What this process holds of one subject in one window. */

import type { RateGrant, RateLeaseRequest } from './ports.ts';

export interface RateWindow {
  readonly number: number;
  /** Leased and not used. */
  left: number;
  /** Admitted here, by lease or alone. */
  admitted: number;
  /** Of these, admitted while the store was away and not reported to it yet. */
  unreported: number;
  /** What the store said was granted to all; at least this much is gone. */
  total: number;
  /** The limit at which the store had no more to grant; a higher one may find some. */
  exhaustedAt: number | undefined;
  /** It is over, or its subject was forgotten: nobody takes from it any more. */
  dropped: boolean;
}

export function newRateWindow(number: number): RateWindow {
  return { number, left: 0, admitted: 0, unreported: 0, total: 0, exhaustedAt: undefined, dropped: false };
}

export function isExhausted(window: RateWindow, limit: number): boolean {
  return window.left < 1 && window.exhaustedAt !== undefined && limit <= window.exhaustedAt;
}

/** What was granted is added to `left` by the caller, which keeps count of it. */
export function learnGrant(
  window: RateWindow,
  { requested, limit, report }: RateLeaseRequest,
  { granted, total }: RateGrant,
): void {
  window.total = total;
  window.unreported -= report;
  window.exhaustedAt = granted < requested ? limit : undefined;
}

/**
 * A share of each without the store, where a lease is left or less than that process's part of the limit was admitted.
 * Answers those whose lease was used, or undefined when there is nothing left of one of them.
 */
export function consumeShare(windows: readonly RateWindow[], part: number): RateWindow[] | undefined {
  if (windows.some(({ left, admitted }) => left < 1 && admitted >= part)) return undefined;
  const leased = windows.filter(({ left }) => left >= 1);
  for (const window of windows) {
    if (window.left >= 1) window.left -= 1;
    else window.unreported += 1;
    window.admitted += 1;
  }
  return leased;
}
