/**
 * Samples faults for the log. While a dependency is unreachable, every check may be a fault with the same reason. So
 * the first faults of each kind in a second have their own lines, and the others are counted.
 */

/** Faults of one kind that were counted and have no line. */
interface CountedFaults {
  readonly count: number;
  /** The first of these faults, as an example. */
  readonly error: unknown;
}

interface Kind {
  linesLeft: number;
  count: number;
  error: unknown;
}

const SECOND_MS = 1000;
/** The maximum number of kinds in one second. All further kinds share one count. */
const MAX_KINDS = 16;
const MAX_KIND_LENGTH = 128;
const OTHER = 'other';

export class FaultSampler {
  readonly #linesPerSecond: number;
  readonly #monotonicMs: () => number;
  readonly #kinds = new Map<string, Kind>();
  #windowStartMs = Number.NEGATIVE_INFINITY;

  /** @param linesPerSecond the number of lines for one kind of fault in a second */
  constructor(linesPerSecond: number, monotonicMs: () => number) {
    this.#linesPerSecond = linesPerSecond;
    this.#monotonicMs = monotonicMs;
  }

  get isCounting(): boolean {
    for (const { count } of this.#kinds.values()) if (count > 0) return true;
    return false;
  }

  /** Reports whether this fault gets its own line. Otherwise counts it. */
  admit(error: unknown): boolean {
    // A past second with counted faults stays open until they are taken, so that no count is lost.
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

  /** Returns the counts of a past second, and starts the next one. Empty while the second lasts. */
  takeFinished(): readonly CountedFaults[] {
    return this.#isOver() ? this.takeAll() : [];
  }

  /** Returns the counts so far, and starts a second. */
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
    return this.#kinds.getOrInsert(key, { linesLeft: this.#linesPerSecond, count: 0, error: undefined });
  }
}

function nameOf(error: unknown): string {
  return (error instanceof Error ? `${error.name}: ${error.message}` : typeof error).slice(0, MAX_KIND_LENGTH);
}
