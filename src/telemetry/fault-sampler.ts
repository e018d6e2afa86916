/**
 * Decides which faults are logged one by one. While a dependency is away every check may be a fault for the same reason, so of each
 * kind the first few of a second get a line each, and the others are counted.
 */

/** Faults of one kind that were counted and not logged. */
export interface CountedFaults {
  readonly count: number;
  /** The first of them; it stands for all. */
  readonly error: unknown;
}

interface Kind {
  linesLeft: number;
  count: number;
  error: unknown;
}

const SECOND_MS = 1000;
/** Kinds told apart in one second. All further kinds share one place. */
const MAX_KINDS = 16;
const MAX_KIND_LENGTH = 128;
const OTHER = 'other';

export class FaultSampler {
  readonly #linesPerSecond: number;
  readonly #monotonicMs: () => number;
  readonly #kinds = new Map<string, Kind>();
  #windowStartMs = Number.NEGATIVE_INFINITY;

  /** @param linesPerSecond how many faults of one kind get a line of their own in a second */
  constructor(linesPerSecond: number, monotonicMs: () => number) {
    this.#linesPerSecond = linesPerSecond;
    this.#monotonicMs = monotonicMs;
  }

  /** Reports whether counted faults wait to be taken. */
  get isCounting(): boolean {
    for (const { count } of this.#kinds.values()) if (count > 0) return true;
    return false;
  }

  /** Reports whether this fault gets a line of its own; otherwise counts it. */
  admit(error: unknown): boolean {
    // A second that is over with counted faults goes on until these are taken, so that no count is lost.
    if (this.#isOver() && !this.isCounting) this.#begin();
    const kind = this.#kindOf(error);
    if (kind.linesLeft > 0) {
      kind.linesLeft--;
      return true;
    }
    if (kind.count === 0) kind.error = error;
    kind.count++;
    return false;
  }

  /** Returns what a second that is over has counted, and begins the next one. Empty while the second lasts. */
  takeFinished(): readonly CountedFaults[] {
    return this.#isOver() ? this.takeAll() : [];
  }

  /** Returns what was counted so far, and begins a second. */
  takeAll(): readonly CountedFaults[] {
    const counted = [...this.#kinds.values()]
      .filter(({ count }) => count > 0)
      .map(({ count, error }) => ({ count, error }));
    this.#begin();
    return counted;
  }

  #isOver(): boolean {
    return this.#monotonicMs() - this.#windowStartMs >= SECOND_MS;
  }

  #begin(): void {
    this.#windowStartMs = this.#monotonicMs();
    this.#kinds.clear();
  }

  #kindOf(error: unknown): Kind {
    const name = nameOf(error);
    const known = this.#kinds.get(name);
    if (known !== undefined) return known;
    const key = this.#kinds.size < MAX_KINDS ? name : OTHER;
    const kind = this.#kinds.get(key) ?? { linesLeft: this.#linesPerSecond, count: 0, error: undefined };
    this.#kinds.set(key, kind);
    return kind;
  }
}

/** What two faults of one kind have in common. */
function nameOf(error: unknown): string {
  return (error instanceof Error ? `${error.name}: ${error.message}` : typeof error).slice(0, MAX_KIND_LENGTH);
}
