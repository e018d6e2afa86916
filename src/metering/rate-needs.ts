/**
 * The subjects that the next statements make requests for. A statement takes a bounded number of them; the others keep
 * their order.
 */

import type { RateSubject } from './rate-subjects.ts';
import type { RateWindow } from './rate-window.ts';
import { LOW_MS } from './slices.ts';

export class RateNeeds {
  /** Subjects that require a statement. */
  readonly #urgent = new Set<RateSubject>();
  /** Subjects that join a statement sent for another reason, so that many subjects do not require one each. */
  readonly #deferred = new Set<RateSubject>();
  /** Subjects with requests that were admitted without the store, and that the store does not know yet. */
  readonly #unreported = new Set<RateSubject>();

  get urgent(): boolean {
    return this.#urgent.size > 0 || this.#unreported.size > 0;
  }

  addUrgent(subject: RateSubject): void {
    this.#urgent.add(subject);
  }

  /** @param window a window with few units left */
  add(subject: RateSubject, { left }: RateWindow, now: number): void {
    (left < subject.demand.expectedIn(LOW_MS, now) ? this.#urgent : this.#deferred).add(subject);
  }

  addReport(subject: RateSubject): void {
    this.#unreported.add(subject);
  }

  /** The store knows all requests that were admitted for the subject. */
  reported(subject: RateSubject): void {
    this.#unreported.delete(subject);
  }

  forget(subject: RateSubject): void {
    this.#urgent.delete(subject);
    this.#deferred.delete(subject);
    this.#unreported.delete(subject);
  }

  /** Subjects with something to report. They stay until `reported`, because a statement may fail. */
  unreported(): Iterable<RateSubject> {
    return this.#unreported;
  }

  /** Removes subjects one by one while the caller iterates, the urgent ones first. */
  *taken(): Generator<RateSubject, void> {
    for (const subjects of [this.#urgent, this.#deferred]) {
      for (const subject of subjects) {
        subjects.delete(subject);
        yield subject;
      }
    }
  }
}
