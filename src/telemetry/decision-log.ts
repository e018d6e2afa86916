/**
 * A log of decisions that never delays one: faults of each kind up to a rate and then their number, denials up to a rate, one allow in
 * many. Entries wait in bounded queues, and a timer makes lines of them, a batch at a time. Each outcome has a queue of its own, so a
 * flood of faults takes no room from denials. An entry that finds its queue full is dropped and counted.
 */

import { BoundedQueue } from './bounded-queue.ts';
import { type CheckOutcome, type OutcomeKind, outcomeKind } from './check-outcome.ts';
import { lineOf } from './decision-line.ts';
import { FaultSampler } from './fault-sampler.ts';

export interface DecisionLogParts {
  /** Takes one line's members. */
  readonly write: (members: Readonly<Record<string, unknown>>) => void;
  readonly monotonicMs: () => number;
  /** One allow in this many is logged; 0 = none. */
  readonly allowOneIn?: number;
  readonly denialsPerSecond?: number;
  /** Faults of one kind; the others of that second are one line with their number. */
  readonly faultsPerSecond?: number;
  /** Entries of each outcome held until they are written. */
  readonly capacity?: number;
  /** Lines written in one go, ten times a second. */
  readonly batch?: number;
}

const WRITE_EVERY_MS = 100;
const SECOND_MS = 1000;
const DEFAULT_CAPACITY = 512;
/** Denials first: they are what an operator looks for when the log is full of something else. */
const OUTCOMES = ['deny', 'fault', 'allow'] as const satisfies readonly OutcomeKind[];

export class DecisionLog {
  readonly #write: DecisionLogParts['write'];
  readonly #monotonicMs: () => number;
  readonly #allowOneIn: number;
  readonly #denialsPerSecond: number;
  readonly #batch: number;
  readonly #queues: Readonly<Record<OutcomeKind, BoundedQueue<CheckOutcome>>>;
  readonly #faults: FaultSampler;
  readonly #dropped: Record<OutcomeKind, number> = { allow: 0, deny: 0, fault: 0 };
  #allowsToSkip: number;
  #denialsLeft: number;
  #windowStartMs = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;

  constructor(parts: DecisionLogParts) {
    this.#write = parts.write;
    this.#monotonicMs = parts.monotonicMs;
    this.#allowOneIn = parts.allowOneIn ?? 1000;
    this.#denialsPerSecond = parts.denialsPerSecond ?? 50;
    this.#batch = parts.batch ?? 200;
    const capacity = parts.capacity ?? DEFAULT_CAPACITY;
    this.#queues = { allow: new BoundedQueue(capacity), deny: new BoundedQueue(capacity), fault: new BoundedQueue(capacity) };
    this.#faults = new FaultSampler(parts.faultsPerSecond ?? 10, parts.monotonicMs);
    this.#allowsToSkip = this.#allowOneIn - 1;
    this.#denialsLeft = this.#denialsPerSecond;
  }

  /**
   * Checks that have no line of their own because they were over the rate or found the queue full, by outcome. Allows that were not
   * sampled are not among them.
   */
  get dropped(): Readonly<Record<OutcomeKind, number>> {
    return this.#dropped;
  }

  offer(outcome: CheckOutcome): void {
    const kind = outcomeKind(outcome.code);
    if (!this.#wants(kind, outcome)) return;
    if (this.#queues[kind].push(outcome)) this.#schedule();
    else this.#dropped[kind]++;
  }

  /** Writes everything that is held; for the end of the process. */
  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#writeHeld(Number.POSITIVE_INFINITY);
    this.#writeCounted(this.#faults.takeAll());
  }

  #wants(kind: OutcomeKind, { error }: CheckOutcome): boolean {
    switch (kind) {
      case 'fault':
        return this.#isLoggedFault(error);
      case 'allow':
        return this.#isSampled();
      case 'deny':
        return this.#isWithinRate();
      default:
        return kind satisfies never;
    }
  }

  #isLoggedFault(error: unknown): boolean {
    if (this.#faults.admit(error)) return true;
    this.#dropped.fault++;
    this.#schedule();
    return false;
  }

  #isSampled(): boolean {
    if (this.#allowsToSkip > 0 || this.#allowOneIn === 0) {
      this.#allowsToSkip--;
      return false;
    }
    this.#allowsToSkip = this.#allowOneIn - 1;
    return true;
  }

  #isWithinRate(): boolean {
    const nowMs = this.#monotonicMs();
    if (nowMs - this.#windowStartMs >= SECOND_MS) {
      this.#windowStartMs = nowMs;
      this.#denialsLeft = this.#denialsPerSecond;
    }
    if (this.#denialsLeft === 0) {
      this.#dropped.deny++;
      return false;
    }
    this.#denialsLeft--;
    return true;
  }

  #schedule(): void {
    if (this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#writeHeld(this.#batch);
      this.#writeCounted(this.#faults.takeFinished());
      if (this.#faults.isCounting || OUTCOMES.some((kind) => this.#queues[kind].length > 0)) this.#schedule();
    }, WRITE_EVERY_MS);
    this.#timer.unref();
  }

  /** One line of each outcome in turn, so that each outcome has its share of the batch. */
  #writeHeld(maxLines: number): void {
    let written = 0;
    for (let before = -1; written > before; ) {
      before = written;
      for (const kind of OUTCOMES) {
        const outcome = written < maxLines ? this.#queues[kind].shift() : undefined;
        if (outcome === undefined) continue;
        this.#write(lineOf(outcome));
        written++;
      }
    }
  }

  #writeCounted(counted: ReturnType<FaultSampler['takeAll']>): void {
    for (const { count, error } of counted) this.#write({ outcome: 'fault', code: 'unavailable', not_logged: count, err: error });
  }
}
