/** The units of one subject in one window that this process holds. */

import type { RateGrant, RateLeaseRequest } from './ports.ts';

export interface RateWindow {
  readonly number: number;
  /** Units leased and not used. */
  left: number;
  /** Requests admitted by this process, by lease or by fair share. */
  admitted: number;
  /** The admitted requests without a lease that the store does not know yet. */
  unreported: number;
  /** Units that the store granted to all processes, as it last reported. */
  total: number;
  /** The limit at which the store had no more units. A higher limit may have some. */
  exhaustedAt: number | undefined;
  /** Whether the window has ended or its subject was forgotten, so that no check uses it. */
  dropped: boolean;
}

export function newRateWindow(number: number): RateWindow {
  return { number, left: 0, admitted: 0, unreported: 0, total: 0, exhaustedAt: undefined, dropped: false };
}

export function isExhausted(window: RateWindow, limit: number): boolean {
  return window.left < 1 && window.exhaustedAt !== undefined && limit <= window.exhaustedAt;
}

/** The caller adds the granted units to `left`, because it keeps their sum. */
export function applyGrant(
  window: RateWindow,
  { requested, limit, report }: RateLeaseRequest,
  { granted, total }: RateGrant,
): void {
  window.total = total;
  window.unreported -= report;
  window.exhaustedAt = granted < requested ? limit : undefined;
}

/**
 * Consumes a unit of each window without the store: a leased one, or one of the process's share.
 * @returns the windows whose lease was used; undefined if a window has neither
 */
export function consumeShare(windows: readonly RateWindow[], share: number): RateWindow[] | undefined {
  if (windows.some(({ left, admitted }) => left < 1 && admitted >= share)) return undefined;
  const leased = windows.filter(({ left }) => left >= 1);
  for (const window of windows) {
    if (window.left >= 1) window.left -= 1;
    else window.unreported += 1;
    window.admitted += 1;
  }
  return leased;
}
