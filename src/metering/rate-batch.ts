/** The requests of one statement for rate leases, a bounded number. */

import type { Interval } from '../domain/store-clock.ts';
import type { RateLeaseRequest } from './ports.ts';
import type { RateSubject } from './rate-subjects.ts';
import { isExhausted, type RateWindow } from './rate-window.ts';
import { rateSliceOf, rateSurplusOf } from './slices.ts';

/** The windows of one subject are not divided between two statements, so a batch may exceed it by two. */
export const MAX_REQUESTS = 1000;
/** The time before a border at which the next window's first slice is requested. */
const AHEAD_MS = 400;

/** The numbers of the windows that may be current, and of the next window shortly before it begins. */
interface WindowSpan {
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
  /** The window of each request, in the same order, and the leased units that it returns. */
  readonly windows: { readonly window: RateWindow; readonly returned: number }[] = [];
  readonly subjects = new Set<RateSubject>();
  readonly #span: WindowSpan;
  readonly #processes: number;
  readonly #nowMs: number;
  readonly #returns: boolean;

  /** @param returns whether the statement returns tokens */
  constructor(span: WindowSpan, processes: number, nowMs: number, returns: boolean) {
    this.#span = span;
    this.#processes = processes;
    this.#nowMs = nowMs;
    this.#returns = returns;
  }

  get isFull(): boolean {
    return this.requests.length >= MAX_REQUESTS;
  }

  /**
   * Adds a request for each window of a subject that waiting checks need, that has few units left, or that has
   * something to report or to return. The caller takes the returned units from the window.
   * @param waits the units that waiting checks need
   * @returns false if there is none
   */
  add(subject: RateSubject, waits: number): boolean {
    const { name, limit } = subject;
    const { first, last, ahead } = this.#span;
    const slice = rateSliceOf(subject, this.#processes, this.#nowMs);
    const before = this.requests.length;
    for (let number = first; number <= ahead; number++) {
      const window = subject.window(number);
      const { left, unreported } = window;
      const needed = slice + (number <= last ? waits : 0);
      const requested = isExhausted(window, needed, this.#nowMs) ? 0 : Math.min(limit, Math.max(0, needed - left));
      const returned = this.#returns ? rateSurplusOf(window, needed, slice) : 0;
      const report = unreported - returned;
      if (requested === 0 && report === 0) continue;
      this.requests.push({ subject: name, window: number, limit, requested, report });
      this.windows.push({ window, returned });
    }
    if (this.requests.length === before) return false;
    this.subjects.add(subject);
    return true;
  }
}
