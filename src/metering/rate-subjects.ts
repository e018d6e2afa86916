/** The limited subjects that this process knows, boundedly. */

import { RateSubject } from './rate-subject.ts';

export type SubjectKind = 'tenant' | 'key';

/** How many subjects are looked at for one to forget. */
const SECOND_CHANCES = 16;

export class RateSubjects {
  readonly #max: number;
  readonly #onForgotten: (subject: RateSubject) => void;
  /** By id; in the order in which they came, or were last found in use. */
  readonly #subjects = { tenant: new Map<string, RateSubject>(), key: new Map<string, RateSubject>() };
  #stranded = 0;

  /** @param max of each kind */
  constructor(max: number, onForgotten: (subject: RateSubject) => void) {
    this.#max = max;
    this.#onForgotten = onForgotten;
  }

  get size(): number {
    return this.#subjects.tenant.size + this.#subjects.key.size;
  }

  *all(): Iterable<RateSubject> {
    yield* this.#subjects.tenant.values();
    yield* this.#subjects.key.values();
  }

  find(kind: SubjectKind, id: string, now: number): RateSubject {
    const subjects = this.#subjects[kind];
    const known = subjects.get(id);
    if (known !== undefined) return known;
    if (subjects.size >= this.#max) this.#forgetOne(subjects);
    const made = new RateSubject(`${kind}:${id}`, now);
    subjects.set(id, made);
    return made;
  }

  /** Those of which the store is to be told something. */
  unreported(): RateSubject[] {
    return [...this.all()].filter(({ windows }) => windows.some(({ unreported }) => unreported > 0));
  }

  /** Requests leased and left of windows that are over, and of subjects forgotten; told once. */
  takeStranded(): number {
    let stranded = this.#stranded;
    for (const subject of this.all()) stranded += subject.takeStranded();
    this.#stranded = 0;
    return stranded;
  }

  /** The oldest that was not in use lately. What it held of its windows is lost to everybody until they end. */
  #forgetOne(subjects: Map<string, RateSubject>): void {
    let chances = SECOND_CHANCES;
    for (const [id, subject] of subjects) {
      subjects.delete(id);
      if (subject.used && chances-- > 0) {
        subject.used = false;
        subjects.set(id, subject);
        continue;
      }
      this.#onForgotten(subject);
      this.#stranded += subject.takeStranded();
      for (const { left } of subject.windows) this.#stranded += left;
      return;
    }
  }
}
