/** The state of a rate limit as clients see it: what this process knows. */

import type { RateWindow } from './rate-window.ts';

export interface RateState {
  /** Requests per window. */
  readonly limit: number;
  readonly remaining: number;
  /** Seconds until the window ends, at least 1. */
  readonly resetSeconds: number;
  /** The window's length, at least 1. */
  readonly windowSeconds: number;
}

/** @param earliestMs the earliest time that the store's clock may have now */
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

/** The state if the store granted nothing in several attempts and did not report that the window is used up. */
export function unknownRate(limit: number, windowMs: number): RateState {
  return { limit, remaining: 0, resetSeconds: 1, windowSeconds: secondsOf(windowMs) };
}

function secondsOf(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1000));
}

/** Returns the tighter one of a key's state and its tenant's. Clients see this one. */
export function tighter(a: RateState | undefined, b: RateState | undefined): RateState | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  if (a.remaining !== b.remaining) return a.remaining < b.remaining ? a : b;
  return a.limit <= b.limit ? a : b;
}
