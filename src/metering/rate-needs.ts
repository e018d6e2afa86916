/** Which subjects the next statements are to ask for. A statement takes a bounded number; the others keep their places. */

import type { RateSubject } from './rate-subject.ts';
import type { RateWindow } from './rate-window.ts';
import { LOW_MS } from './slices.ts';

export class RateNeeds {
  /** A statement is to be sent for them. */
  readonly #low = new Set<RateSubject>();
  /** A statement that is sent anyway asks for them too, so that many subjects do not need one each. */
  readonly #short = new Set<RateSubject>();
  /** Requests were admitted without the store, which does not know of them yet. */
  readonly #unreported = new Set<RateSubject>();

  /** Whether a statement is to be sent. */
  get urgent(): boolean {
    return this.#low.size > 0 || this.#unreported.size > 0;
  }

  add(subject: RateSubject): void {
    this.#low.add(subject);
  }

  /** @param window of which little is left */
  note(subject: RateSubject, { left }: RateWindow, now: number): void {
    (left < subject.demand.within(LOW_MS, now) ? this.#low : this.#short).add(subject);
  }

  owesReport(subject: RateSubject): void {
    this.#unreported.add(subject);
  }

  /** The store knows of everything that was admitted. */
  reported(subject: RateSubject): void {
    this.#unreported.delete(subject);
  }

  forget(subject: RateSubject): void {
    this.#low.delete(subject);
    this.#short.delete(subject);
    this.#unreported.delete(subject);
  }

  /** Subjects with something to report. They stay until `reported`, because a statement may fail. */
  unreported(): Iterable<RateSubject> {
    return this.#unreported;
  }

  /** Takes subjects one by one, the most urgent first, for as long as the caller iterates. */
  *taken(): Generator<RateSubject, void> {
    for (const subjects of [this.#low, this.#short]) {
      for (const subject of subjects) {
        subjects.delete(subject);
        yield subject;
      }
    }
  }
}
