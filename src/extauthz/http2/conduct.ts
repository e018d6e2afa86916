/**
 * Bounds the behavior of one peer apart from its requests: control frames, resets and protocol errors (`bounds.ts`). It
 * also stores the streams that this server reset, because their peer may send frames before it reads the reset.
 */

import { CONTROL_FRAMES, CONTROL_FRAMES_PER_STREAM, LARGE_HEADS, RESETS, STREAM_ERRORS } from './bounds.ts';
import { Budget } from './budget.ts';

const MAX_RESET_IDS = 8192;

export class Conduct {
  readonly #control: Budget;
  readonly #errors: Budget;
  readonly #largeHeads: Budget;
  /** The budgets of resets by the kind of the stream. */
  readonly #resets: (Budget | undefined)[] = [];
  readonly #resetIds = new Set<number>();

  constructor(nowMs: number) {
    this.#control = new Budget(CONTROL_FRAMES, nowMs);
    this.#errors = new Budget(STREAM_ERRORS, nowMs);
    this.#largeHeads = new Budget(LARGE_HEADS, nowMs);
  }

  /** Counts control frames. Returns false beyond the bound. */
  takesControl(nowMs: number, cost: number): boolean {
    return this.#control.take(nowMs, cost);
  }

  /** Permits the additional control frames of a stream, or of a DATA frame of an answer. */
  permitControl(): void {
    this.#control.give(CONTROL_FRAMES_PER_STREAM);
  }

  /** Counts a protocol error for which this server resets a stream. Returns false beyond the bound. */
  takesError(nowMs: number): boolean {
    return this.#errors.take(nowMs);
  }

  /** Counts a header list that is too large. Returns false beyond the bound. */
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

  /** Reports whether the peer may open a stream of this kind, given its resets. */
  mayOpen(kind: number, nowMs: number): boolean {
    return this.#resets[kind]?.hasLeft(nowMs) !== false;
  }

  /** Stores a stream that this server reset, and removes the oldest one beyond the bound. */
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
