/** The units of one subject in one window that this process holds. */

import type { RateGrant, RateLeaseRequest } from './ports.ts';
import type { RateSubject } from './rate-subjects.ts';

export interface RateWindow {
  readonly subject: RateSubject;
  readonly number: number;
  /** Units leased and not used. */
  left: number;
  /** Units that this process admitted, by lease or by fair share, and that no correction returned. */
  admitted: number;
  /** The admitted units without a lease that the store does not know yet. Negative: it knows more than there are. */
  unreported: number;
  /** Units that the store granted to all processes, as it last reported. */
  total: number;
  /** The limit at which the store had no more units. A higher limit may have some. */
  exhaustedAt: number | undefined;
  /** The monotonic time until which `exhaustedAt` counts. */
  exhaustedUntilMs: number;
  /** Whether the window has ended or its subject was forgotten, so that no check uses it. */
  dropped: boolean;
}

/**
 * Other processes may return tokens to the store, so a check asks for them again after this time. They return requests
 * only when they stop.
 */
const TOKENS_RETRY_MS = 200;

export function newRateWindow(subject: RateSubject, number: number): RateWindow {
  return {
    subject,
    number,
    left: 0,
    admitted: 0,
    unreported: 0,
    total: 0,
    exhaustedAt: undefined,
    exhaustedUntilMs: Number.POSITIVE_INFINITY,
    dropped: false,
  };
}

/** Reports whether neither the process nor the store has the amount. */
export function isExhausted(window: RateWindow, amount: number, nowMs: number): boolean {
  const { left, exhaustedAt, exhaustedUntilMs, subject } = window;
  return left < amount && exhaustedAt !== undefined && subject.limit <= exhaustedAt && nowMs < exhaustedUntilMs;
}

/**
 * The caller adds the granted units to `left`, because it keeps their sum.
 * @param returned the leased units that the request returned
 */
export function applyGrant(
  window: RateWindow,
  { requested, limit, report }: RateLeaseRequest,
  { granted, total }: RateGrant,
  returned: number,
  nowMs: number,
): void {
  window.total = total;
  window.unreported -= report + returned;
  window.exhaustedAt = granted < requested ? limit : undefined;
  if (window.subject.unit === 'tokens') window.exhaustedUntilMs = nowMs + TOKENS_RETRY_MS;
}
