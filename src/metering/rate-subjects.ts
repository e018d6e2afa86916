/** The subjects of rate limits that this process knows, a bounded number, and the windows of each. */

import type { RateLimitMember } from '../domain/problem-details.ts';
import { Demand } from './demand.ts';
import { newRateWindow, type RateWindow } from './rate-window.ts';

/** `model`: all limits by model. */
export type SubjectKind = 'tenant' | 'key' | 'model';

/** The current window, the next one, and the previous one around a border. */
const MAX_WINDOWS = 3;

export class RateSubject {
  readonly name: string;
  /** The limit as a refusal names it. */
  readonly label: RateLimitMember;
  readonly unit: 'requests' | 'tokens';
  readonly demand: Demand;
  /** The limit sent with the last check. Every check carries the limit, so a raised limit takes effect at once. */
  limit = 0;
  /** The amount of the last check. */
  lastAmount = 1;
  /** Whether it was used since it was last considered for removal. */
  used = true;
  /** Whether it was removed, so that another subject has its name. */
  forgotten = false;
  /** The generation of recent subjects that has it, see `RecentSubjects`. */
  generation = 0;
  readonly #onStranded: (subject: RateSubject, units: number) => void;
  #windows: RateWindow[] = [];
  /** The window of the last check, so that most checks read one object less from memory. */
  #last: RateWindow | undefined;

  /** @param onStranded called with the unused units of a window that is dropped */
  constructor(
    name: string,
    label: RateLimitMember,
    nowMs: number,
    onStranded: (subject: RateSubject, units: number) => void,
  ) {
    this.name = name;
    this.label = label;
    this.unit = label.dimension === 'tokens_per_minute' ? 'tokens' : 'requests';
    this.#onStranded = onStranded;
    this.demand = new Demand(nowMs);
  }

  get windows(): readonly RateWindow[] {
    return this.#windows;
  }

  /** @param tokens the tokens that the request may spend */
  amountOf(tokens: number): number {
    return this.unit === 'tokens' ? tokens : 1;
  }

  window(number: number): RateWindow {
    if (this.#last?.number === number) return this.#last;
    this.#last = this.#windows.find((window) => window.number === number) ?? this.#add(number);
    return this.#last;
  }

  #add(number: number): RateWindow {
    const made = newRateWindow(this, number);
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

  forget(): void {
    this.forgotten = true;
    for (const window of this.#windows) this.#drop(window);
    this.#windows = [];
    this.#last = undefined;
  }

  #drop(window: RateWindow | undefined): void {
    if (window === undefined) return;
    window.dropped = true;
    this.#onStranded(this, window.left);
  }
}

/** The largest number of subjects that are examined to find one to forget. */
const SECOND_CHANCES = 16;

interface RateSubjectsParts {
  /** The largest number of subjects of each kind. */
  readonly max: number;
  readonly onForgotten: (subject: RateSubject) => void;
  /** Called with the unused units of ended windows and of forgotten subjects. */
  readonly onStranded: (subject: RateSubject, units: number) => void;
}

export class RateSubjects {
  readonly #parts: RateSubjectsParts;
  readonly #kinds = { tenant: new SubjectsOfKind(), key: new SubjectsOfKind(), model: new SubjectsOfKind() };

  constructor(parts: RateSubjectsParts) {
    this.#parts = parts;
  }

  get size(): number {
    return Object.values(this.#kinds).reduce((sum, { subjects }) => sum + subjects.size, 0);
  }

  *all(): Iterable<RateSubject> {
    for (const { subjects } of Object.values(this.#kinds)) yield* subjects.values();
  }

  /** @param id unique among the subjects of the kind */
  find(kind: SubjectKind, id: string, label: RateLimitMember, now: number): RateSubject {
    const { subjects } = this.#kinds[kind];
    const known = subjects.get(id);
    if (known !== undefined) return known;
    if (subjects.size >= this.#parts.max) this.#forgetOne(this.#kinds[kind]);
    const name = kind === 'model' ? id : `${kind}:${id}`;
    const made = new RateSubject(name, label, now, this.#parts.onStranded);
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
      subject.forget();
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
