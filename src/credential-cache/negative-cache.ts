/**
 * A small, short memory of bad answers, apart from the good ones so that no flood of them can push a good one out. Bounded: when the
 * newer half is full, the older half goes at once.
 */
export class NegativeCache<Value> {
  readonly #maxHalf: number;
  readonly #ttlMs: number;
  #older = new Map<string, Entry<Value>>();
  #newer = new Map<string, Entry<Value>>();

  /** @param max how many are kept at most; at least 2 */
  constructor(max: number, ttlMs: number) {
    this.#maxHalf = Math.max(1, Math.floor(max / 2));
    this.#ttlMs = ttlMs;
  }

  get size(): number {
    return this.#older.size + this.#newer.size;
  }

  get(key: string, monotonicMs: number): Value | undefined {
    const entry = this.#newer.get(key) ?? this.#older.get(key);
    return entry !== undefined && monotonicMs < entry.untilMs ? entry.value : undefined;
  }

  /** @param sinceMs monotonic milliseconds at which the question was put */
  put(key: string, value: Value, sinceMs: number): void {
    if (this.#newer.size >= this.#maxHalf && !this.#newer.has(key)) {
      this.#older = this.#newer;
      this.#newer = new Map();
    }
    this.#older.delete(key);
    this.#newer.set(key, { value, untilMs: sinceMs + this.#ttlMs });
  }

  delete(key: string): void {
    this.#older.delete(key);
    this.#newer.delete(key);
  }

  clear(): void {
    this.#older.clear();
    this.#newer.clear();
  }
}

interface Entry<Value> {
  readonly value: Value;
  readonly untilMs: number;
}
