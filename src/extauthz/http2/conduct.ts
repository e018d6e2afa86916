/**
 * How one peer behaves beside its requests: control frames, resets and protocol errors, each within a bound of `bounds.ts`. It also
 * remembers the streams that this server reset, because their peer may have sent more frames before it read of that.
 */

import { CONTROL_FRAMES, CONTROL_FRAMES_PER_STREAM, LARGE_HEADS, RESETS, STREAM_ERRORS } from './bounds.ts';
import { Budget } from './budget.ts';

const MAX_RESET_IDS = 8192;

export class Conduct {
  readonly #control: Budget;
  readonly #errors: Budget;
  readonly #largeHeads: Budget;
  /** By the kind of the stream. */
  readonly #resets: (Budget | undefined)[] = [];
  readonly #resetIds = new Set<number>();

  constructor(nowMs: number) {
    this.#control = new Budget(CONTROL_FRAMES, nowMs);
    this.#errors = new Budget(STREAM_ERRORS, nowMs);
    this.#largeHeads = new Budget(LARGE_HEADS, nowMs);
  }

  /** Counts frames that carry nothing of a request. Returns false if there were too many. */
  takesControl(nowMs: number, cost: number): boolean {
    return this.#control.take(nowMs, cost);
  }

  /** Permits the control frames that belong to a stream, or to a DATA frame of an answer. */
  permitControl(): void {
    this.#control.give(CONTROL_FRAMES_PER_STREAM);
  }

  /** Counts an error for which this server resets a stream. Returns false if there were too many. */
  takesError(nowMs: number): boolean {
    return this.#errors.take(nowMs);
  }

  /** Counts a header list that is too large. Returns false if there were too many. */
  takesLargeHead(nowMs: number): boolean {
    return this.#largeHeads.take(nowMs);
  }

  /** Counts a stream that the peer reset before its answer was sent. */
  countReset(kind: number, nowMs: number): void {
    let budget = this.#resets[kind];
    if (budget === undefined) {
      budget = new Budget(RESETS, nowMs);
      this.#resets[kind] = budget;
    }
    budget.take(nowMs);
  }

  /** Reports whether the peer may open a stream of this kind: it has not reset too many of them. */
  mayOpen(kind: number, nowMs: number): boolean {
    return this.#resets[kind]?.hasLeft(nowMs) !== false;
  }

  /** Remembers a stream that this server reset, and forgets the oldest of too many. */
  noteReset(id: number): void {
    this.#resetIds.add(id);
    if (this.#resetIds.size <= MAX_RESET_IDS) return;
    const [oldest] = this.#resetIds;
    if (oldest !== undefined) this.#resetIds.delete(oldest);
  }

  wasReset(id: number): boolean {
    return this.#resetIds.has(id);
  }
}
