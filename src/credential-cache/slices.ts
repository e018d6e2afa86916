/**
 * Runs long work in slices on the deciding thread, so that no check waits long for it.
 *
 * Work that fits into the rest of the turn's slice runs at once; other work queues. New work gets the rest of a slice
 * before older work continues, so a small tenant does not wait for a large one. Large pieces of work run one after the
 * other, so only one of them holds a partial result. A pause between two slices is as long as the slice before it.
 */

import { finish, type Steps } from '../domain/steps.ts';

/** The longest slice, in milliseconds, except for its last step. */
export const SLICE_MS = 2;

/** The result of work, and its processor time; `value` is undefined if the work was abandoned. */
export interface Ran<T> {
  readonly value: T | undefined;
  readonly spentMs: number;
}

export interface StepRunner {
  /**
   * Runs the steps to their end, or abandons them when `wanted` returns false. `wanted` is called before each slice.
   * @returns the result itself if it is ready at once, otherwise a promise. Throws or rejects with the error of a step.
   */
  run<T extends object>(steps: Steps<T>, wanted: () => boolean): Ran<T> | Promise<Ran<T>>;
}

/** For work that is always short. */
export const AT_ONCE: StepRunner = {
  run: (steps) => ({ value: finish(steps), spentMs: 0 }),
};

/** Work in the queue. `go` runs it until a time and reports whether it has ended. */
interface Job {
  go(untilMs: number): boolean;
  readonly begun: boolean;
}

interface SlicesParts {
  readonly monotonicMs: () => number;
  /** Calls back after at least `ms` milliseconds; 0 = in the next turn of the event loop. */
  readonly later: (call: () => void, ms: number) => void;
}

export const onEventLoop: SlicesParts['later'] = (call, ms) => {
  if (ms === 0) setImmediate(call);
  else setTimeout(call, ms);
};

export class Slices implements StepRunner {
  readonly #parts: SlicesParts;
  readonly #fresh: Job[] = [];
  readonly #long: Job[] = [];
  #spentMs = 0;
  #turnEnds = false;
  #pumping = false;

  constructor(parts: SlicesParts) {
    this.#parts = parts;
  }

  get waiting(): number {
    return this.#fresh.length + this.#long.length;
  }

  run<T extends object>(steps: Steps<T>, wanted: () => boolean): Ran<T> | Promise<Ran<T>> {
    const job = new StepJob(steps, wanted, this.#parts.monotonicMs);
    const startedAtMs = this.#parts.monotonicMs();
    const leftMs = SLICE_MS - this.#spentMs;
    if (leftMs > 0 && this.#fresh.length === 0) {
      const over = job.go(startedAtMs + leftMs);
      this.#spend(startedAtMs);
      if (over) return job.outcome();
    }
    const done = Promise.withResolvers<Ran<T>>();
    job.onOver = () => {
      try {
        done.resolve(job.outcome());
      } catch (error) {
        done.reject(error);
      }
    };
    (job.begun ? this.#long : this.#fresh).push(job);
    if (!this.#pumping) {
      this.#pumping = true;
      this.#parts.later(() => this.#pump(), 0);
    }
    return done.promise;
  }

  /** Counts time against this turn of the event loop. */
  #spend(sinceMs: number): void {
    this.#spentMs += this.#parts.monotonicMs() - sinceMs;
    if (this.#turnEnds) return;
    this.#turnEnds = true;
    this.#parts.later(() => {
      this.#turnEnds = false;
      this.#spentMs = 0;
    }, 0);
  }

  #pump(): void {
    const startedAtMs = this.#parts.monotonicMs();
    const untilMs = startedAtMs + SLICE_MS;
    do {
      const job = this.#fresh.shift() ?? this.#long[0];
      if (job === undefined) break;
      const wasLong = job === this.#long[0];
      const over = job.go(untilMs);
      if (over && wasLong) this.#long.shift();
      if (!over && !wasLong) this.#long.push(job);
    } while (this.#parts.monotonicMs() < untilMs);
    this.#spend(startedAtMs);
    this.#pumping = this.waiting > 0;
    const pauseMs = Math.ceil(this.#parts.monotonicMs() - startedAtMs);
    if (this.#pumping) this.#parts.later(() => this.#pump(), pauseMs);
  }
}

class StepJob<T extends object> implements Job {
  readonly #steps: Steps<T>;
  readonly #wanted: () => boolean;
  readonly #monotonicMs: () => number;
  #value: T | undefined;
  #failed: { readonly error: unknown } | undefined;
  #spentMs = 0;
  begun = false;
  onOver: () => void = () => undefined;

  constructor(steps: Steps<T>, wanted: () => boolean, monotonicMs: () => number) {
    this.#steps = steps;
    this.#wanted = wanted;
    this.#monotonicMs = monotonicMs;
  }

  go(untilMs: number): boolean {
    this.begun = true;
    const startedAtMs = this.#monotonicMs();
    const over = this.#step(untilMs);
    this.#spentMs += this.#monotonicMs() - startedAtMs;
    if (over) this.onOver();
    return over;
  }

  outcome(): Ran<T> {
    if (this.#failed !== undefined) throw this.#failed.error;
    return { value: this.#value, spentMs: this.#spentMs };
  }

  #step(untilMs: number): boolean {
    try {
      if (!this.#wanted()) return true;
      do {
        const step = this.#steps.next();
        if (step.done === true) {
          this.#value = step.value;
          return true;
        }
      } while (this.#monotonicMs() < untilMs);
      return false;
    } catch (error) {
      this.#failed = { error };
      return true;
    }
  }
}
