/** What this process holds of one subject in one window. */

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
}

export function newRateWindow(number: number): RateWindow {
  return { number, left: 0, admitted: 0, unreported: 0, total: 0, exhaustedAt: undefined };
}

export function isExhausted(window: RateWindow, limit: number): boolean {
  return window.left < 1 && window.exhaustedAt !== undefined && limit <= window.exhaustedAt;
}
