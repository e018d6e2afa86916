/** What one statement asks for rates, a bounded number of wishes. */

import type { Interval } from '../domain/store-clock.ts';
import type { RateLeaseRequest } from './ports.ts';
import type { RateSubject } from './rate-subject.ts';
import { isExhausted, type RateWindow } from './rate-window.ts';
import { rateSliceOf } from './slices.ts';

/** The windows of one subject are not divided between two statements. */
export const MAX_REQUESTS = 1000;
/** How long before its border the next window's first slice is asked for. */
const AHEAD_MS = 400;

/** Windows by their number: those that may be now, and shortly before its beginning the next one. */
export interface WindowSpan {
  readonly first: number;
  readonly last: number;
  readonly ahead: number;
}

/** @param interval the store's clock now */
export function windowSpanAt({ earliestMs, latestMs }: Interval, windowMs: number): WindowSpan {
  const last = Math.floor(latestMs / windowMs);
  const ahead = (last + 1) * windowMs - latestMs <= AHEAD_MS ? last + 1 : last;
  return { first: Math.floor(earliestMs / windowMs), last, ahead };
}

export class RateBatch {
  readonly requests: RateLeaseRequest[] = [];
  /** Of each wish, in the same order. */
  readonly windows: RateWindow[] = [];
  readonly subjects = new Set<RateSubject>();
  readonly #span: WindowSpan;
  readonly #processes: number;
  readonly #nowMs: number;

  constructor(span: WindowSpan, processes: number, nowMs: number) {
    this.#span = span;
    this.#processes = processes;
    this.#nowMs = nowMs;
  }

  get isFull(): boolean {
    return this.requests.length >= MAX_REQUESTS;
  }

  /**
   * Adds a wish for each window of a subject that a check waits for, that runs low, or that has something to report.
   * @param waits checks that wait
   * @returns false if there is none
   */
  add(subject: RateSubject, waits: number): boolean {
    const { first, last, ahead } = this.#span;
    const slice = rateSliceOf(subject, this.#processes, this.#nowMs);
    const before = this.requests.length;
    for (let number = first; number <= ahead; number++) {
      const window = subject.window(number);
      const requested = isExhausted(window, subject.limit)
        ? 0
        : Math.max(0, slice + (number <= last ? waits : 0) - window.left);
      if (requested === 0 && window.unreported === 0) continue;
      this.requests.push({
        subject: subject.name,
        window: number,
        limit: subject.limit,
        requested,
        report: window.unreported,
      });
      this.windows.push(window);
    }
    if (this.requests.length === before) return false;
    this.subjects.add(subject);
    return true;
  }
}
