/** The limited subjects that this process knows, boundedly. */

import { RateSubject } from './rate-subject.ts';

export type SubjectKind = 'tenant' | 'key';

/** How many subjects are looked at for one to forget. */
const SECOND_CHANCES = 16;

export interface RateSubjectsParts {
  /** Subjects of each kind. */
  readonly max: number;
  readonly onForgotten: (subject: RateSubject) => void;
  /** Called with the requests that were left of windows that are over, and of subjects that were forgotten. */
  readonly onStranded: (requests: number) => void;
}

export class RateSubjects {
  readonly #parts: RateSubjectsParts;
  readonly #kinds = { tenant: new Kind(), key: new Kind() };

  constructor(parts: RateSubjectsParts) {
    this.#parts = parts;
  }

  get size(): number {
    return this.#kinds.tenant.subjects.size + this.#kinds.key.subjects.size;
  }

  *all(): Iterable<RateSubject> {
    yield* this.#kinds.tenant.subjects.values();
    yield* this.#kinds.key.subjects.values();
  }

  find(kind: SubjectKind, id: string, now: number): RateSubject {
    const { subjects } = this.#kinds[kind];
    const known = subjects.get(id);
    if (known !== undefined) return known;
    if (subjects.size >= this.#parts.max) this.#forgetOne(this.#kinds[kind]);
    const made = new RateSubject(`${kind}:${id}`, now, this.#parts.onStranded);
    subjects.set(id, made);
    return made;
  }

  /** One that was not in use since it was last looked at. What it held of its windows is lost to everybody until they end. */
  #forgetOne(kind: Kind): void {
    let chances = SECOND_CHANCES;
    for (;;) {
      const next = kind.next();
      if (next === undefined) return;
      const [id, subject] = next;
      if (subject.used && chances > 0) {
        chances -= 1;
        subject.used = false;
        continue;
      }
      kind.subjects.delete(id);
      this.#parts.onForgotten(subject);
      subject.dropWindows();
      return;
    }
  }
}

class Kind {
  readonly subjects = new Map<string, RateSubject>();
  /** Goes round and round: a search from the beginning would pass what was removed there each time. */
  #hand: MapIterator<[string, RateSubject]> = this.subjects.entries();

  next(): [string, RateSubject] | undefined {
    const { value } = this.#hand.next();
    if (value !== undefined) return value;
    this.#hand = this.subjects.entries();
    return this.#hand.next().value;
  }
}
