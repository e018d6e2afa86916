/** Which subjects need more requests of their windows, and how soon. */

import type { RateSubject } from './rate-subject.ts';
import type { RateWindow } from './rate-window.ts';
import { LOW_MS } from './slices.ts';

export class RateNeeds {
  /** A statement is to be sent for them. */
  readonly #low = new Set<RateSubject>();
  /** A statement that is sent anyway asks for them too, so that many subjects do not need one each. */
  readonly #short = new Set<RateSubject>();

  get urgent(): boolean {
    return this.#low.size > 0;
  }

  add(subject: RateSubject): void {
    this.#low.add(subject);
  }

  /** @param window of which little is left */
  note(subject: RateSubject, { left }: RateWindow, now: number): void {
    (left < subject.demand.within(LOW_MS, now) ? this.#low : this.#short).add(subject);
  }

  forget(subject: RateSubject): void {
    this.#low.delete(subject);
    this.#short.delete(subject);
  }

  /** All of them, once. */
  take(): RateSubject[] {
    const all = [...this.#low, ...this.#short];
    this.#low.clear();
    this.#short.clear();
    return all;
  }
}
