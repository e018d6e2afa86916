/** The subjects of rate limits that this process knows, a bounded number, and the windows of each. */

import { Demand } from './demand.ts';
import { newRateWindow, type RateWindow } from './rate-window.ts';

export type SubjectKind = 'tenant' | 'key';

/** The current window, the next one, and the previous one around a border. */
const MAX_WINDOWS = 3;

export class RateSubject {
  readonly name: string;
  readonly demand: Demand;
  /** The limit sent with the last check. Every check carries the limit, so a raised limit takes effect at once. */
  limit = 0;
  /** Whether it was used since it was last considered for removal. */
  used = true;
  /** The generation of recent subjects that has it, see `RecentSubjects`. */
  generation = 0;
  readonly #onStranded: (requests: number) => void;
  #windows: RateWindow[] = [];
  /** The window of the last check, so that most checks read one object less from memory. */
  #last: RateWindow | undefined;

  /** @param onStranded called with the unused requests of a window that is dropped */
  constructor(name: string, nowMs: number, onStranded: (requests: number) => void) {
    this.name = name;
    this.#onStranded = onStranded;
    this.demand = new Demand(nowMs);
  }

  get windows(): readonly RateWindow[] {
    return this.#windows;
  }

  window(number: number): RateWindow {
    if (this.#last?.number === number) return this.#last;
    this.#last = this.#windows.find((window) => window.number === number) ?? this.#add(number);
    return this.#last;
  }

  #add(number: number): RateWindow {
    const made = newRateWindow(number);
    const windows = [...this.#windows, made].sort((a, b) => a.number - b.number);
    // The store's clock may have been set back, so the windows farthest from this one are dropped, not the earliest.
    while (windows.length > MAX_WINDOWS) {
      const after = (windows.at(-1)?.number ?? number) - number;
      const before = number - (windows[0]?.number ?? number);
      this.#drop(after > before ? windows.pop() : windows.shift());
    }
    this.#windows = windows;
    return made;
  }

  dropWindows(): void {
    for (const window of this.#windows) this.#drop(window);
    this.#windows = [];
    this.#last = undefined;
  }

  #drop(window: RateWindow | undefined): void {
    if (window === undefined) return;
    window.dropped = true;
    this.#onStranded(window.left);
  }
}

/** The largest number of subjects that are examined to find one to forget. */
const SECOND_CHANCES = 16;

interface RateSubjectsParts {
  /** The largest number of subjects of each kind. */
  readonly max: number;
  readonly onForgotten: (subject: RateSubject) => void;
  /** Called with the unused requests of ended windows and of forgotten subjects. */
  readonly onStranded: (requests: number) => void;
}

export class RateSubjects {
  readonly #parts: RateSubjectsParts;
  readonly #kinds = { tenant: new SubjectsOfKind(), key: new SubjectsOfKind() };

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

  /** Forgets a subject that was not used since the last round. Its leases stay unused until their windows end. */
  #forgetOne(kind: SubjectsOfKind): void {
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

class SubjectsOfKind {
  readonly subjects = new Map<string, RateSubject>();
  /** Circulates: a search from the beginning would skip all removed entries each time. */
  #cursor: MapIterator<[string, RateSubject]> = this.subjects.entries();

  next(): [string, RateSubject] | undefined {
    const { value } = this.#cursor.next();
    if (value !== undefined) return value;
    this.#cursor = this.subjects.entries();
    return this.#cursor.next().value;
  }
}
