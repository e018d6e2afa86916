/** What a client is told of a rate: what this process knows. */

import type { RateWindow } from './rate-window.ts';

export interface RateState {
  /** Requests per window. */
  readonly limit: number;
  readonly remaining: number;
  /** Until the window ends, at least 1. */
  readonly resetSeconds: number;
  /** How long a window lasts, at least 1. */
  readonly windowSeconds: number;
}

/** @param earliestMs the store's clock, at the least */
export function rateState(limit: number, window: RateWindow, windowMs: number, earliestMs: number): RateState {
  const endMs = (window.number + 1) * windowMs;
  const gone = Math.max(window.total - window.left, window.admitted);
  return {
    limit,
    remaining: Math.max(0, limit - gone),
    resetSeconds: secondsOf(endMs - earliestMs),
    windowSeconds: secondsOf(windowMs),
  };
}

/** Where the store answered and nothing could be had, though it did not say that there is none. */
export function unknownRate(limit: number, windowMs: number): RateState {
  return { limit, remaining: 0, resetSeconds: 1, windowSeconds: secondsOf(windowMs) };
}

function secondsOf(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1000));
}

/** Of a key's and its tenant's, the one to be told of. */
export function tighter(a: RateState | undefined, b: RateState | undefined): RateState | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  if (a.remaining !== b.remaining) return a.remaining < b.remaining ? a : b;
  return a.limit <= b.limit ? a : b;
}
