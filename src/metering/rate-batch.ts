/** What one statement asks for rates, a bounded number of wishes. */

import type { Interval } from '../domain/store-clock.ts';
import type { RateAsk } from './ports.ts';
import type { RateSubject } from './rate-subject.ts';
import { isExhausted, type RateWindow } from './rate-window.ts';
import { rateSliceOf } from './slices.ts';

/** The windows of one subject are not divided between two statements. */
export const MAX_ASKS = 1000;
/** How long before its border the next window's first slice is asked for. */
const AHEAD_MS = 400;

/** Windows by their number: those that may be now, and shortly before its beginning the next one. */
export interface Span {
  readonly first: number;
  readonly last: number;
  readonly ahead: number;
}

/** @param interval the store's clock now */
export function spanAt({ earliestMs, latestMs }: Interval, windowMs: number): Span {
  const last = Math.floor(latestMs / windowMs);
  const ahead = (last + 1) * windowMs - latestMs <= AHEAD_MS ? last + 1 : last;
  return { first: Math.floor(earliestMs / windowMs), last, ahead };
}

export class RateBatch {
  readonly asks: RateAsk[] = [];
  /** Of each wish, in the same order. */
  readonly windows: RateWindow[] = [];
  readonly subjects = new Set<RateSubject>();
  readonly #span: Span;
  readonly #holders: number;
  readonly #nowMs: number;

  constructor(span: Span, holders: number, nowMs: number) {
    this.#span = span;
    this.#holders = holders;
    this.#nowMs = nowMs;
  }

  get isFull(): boolean {
    return this.asks.length >= MAX_ASKS;
  }

  /**
   * Adds a wish for each window of a subject that a check waits for, that runs low, or that has something to report.
   * @param waits checks that wait
   * @returns false if there is none
   */
  add(subject: RateSubject, waits: number): boolean {
    const { first, last, ahead } = this.#span;
    const slice = rateSliceOf(subject, this.#holders, this.#nowMs);
    const before = this.asks.length;
    for (let number = first; number <= ahead; number++) {
      const window = subject.window(number);
      const want = isExhausted(window, subject.limit)
        ? 0
        : Math.max(0, slice + (number <= last ? waits : 0) - window.left);
      if (want === 0 && window.unreported === 0) continue;
      this.asks.push({ subject: subject.name, window: number, limit: subject.limit, want, report: window.unreported });
      this.windows.push(window);
    }
    if (this.asks.length === before) return false;
    this.subjects.add(subject);
    return true;
  }
}
