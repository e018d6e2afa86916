/** The state of a rate limit as clients see it: what this process knows. */

import type { RateWindow } from './rate-window.ts';

export interface RateState {
  /** Requests or tokens per window. */
  readonly limit: number;
  readonly remaining: number;
  /** Seconds until the window ends, at least 1. */
  readonly resetSeconds: number;
  /** The window's length, at least 1. */
  readonly windowSeconds: number;
}

/** @param earliestMs the earliest time that the store's clock may have now */
export function rateState(window: RateWindow, windowMs: number, earliestMs: number): RateState {
  const endMs = (window.number + 1) * windowMs;
  return {
    limit: window.subject.limit,
    remaining: remainingIn(window),
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

function remainingIn({ subject, total, left, admitted }: RateWindow): number {
  return Math.max(0, subject.limit - Math.max(total - left, admitted));
}

/** Returns the tighter one of two windows of a request. Clients see its state. */
export function tighter(a: RateWindow | undefined, b: RateWindow): RateWindow {
  if (a === undefined) return b;
  const difference = remainingIn(a) - remainingIn(b);
  return difference < 0 || (difference === 0 && a.subject.limit <= b.subject.limit) ? a : b;
}
