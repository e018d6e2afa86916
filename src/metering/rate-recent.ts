/**
 * The subjects that were used in the last one to two seconds. Only they are likely to be used right after the next
 * border. Before a border, they are visited in bounded steps.
 */

import type { RateSubject } from './rate-subjects.ts';

const GENERATION_MS = 1000;

export class RecentSubjects {
  #current = new Set<RateSubject>();
  #previous = new Set<RateSubject>();
  #begunMs = Number.NEGATIVE_INFINITY;
  #generation = 0;
  #walk: Iterator<RateSubject, void> | undefined;
  #walkedFor = Number.NaN;

  record(subject: RateSubject, nowMs: number): void {
    if (nowMs - this.#begunMs >= GENERATION_MS) {
      this.#previous = nowMs - this.#begunMs >= 2 * GENERATION_MS ? new Set() : this.#current;
      this.#current = new Set();
      this.#begunMs = nowMs;
      this.#generation += 1;
    }
    if (subject.generation === this.#generation) return;
    subject.generation = this.#generation;
    this.#current.add(subject);
  }

  forget(subject: RateSubject): void {
    this.#current.delete(subject);
    this.#previous.delete(subject);
  }

  /** Returns the next subjects, at most `most`. A walk begins with each new window, and again after its end. */
  next(window: number, most: number): RateSubject[] {
    if (this.#walkedFor !== window) this.#walk = undefined;
    this.#walkedFor = window;
    this.#walk ??= this.#all();
    const found: RateSubject[] = [];
    while (found.length < most) {
      const { value } = this.#walk.next();
      if (value === undefined) {
        this.#walk = undefined;
        break;
      }
      found.push(value);
    }
    return found;
  }

  /** The last used subjects come first, because the walk may not reach all of them. */
  *#all(): Generator<RateSubject, void> {
    yield* this.#current;
    yield* this.#previous;
  }
}
