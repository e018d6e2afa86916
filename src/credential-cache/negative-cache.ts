/**
 * A small, short memory of negative results. It is separate from the positive entries, so no flood of negative results
 * can evict one. Bounded: when the newer half is full, the older half is dropped.
 */
export class NegativeCache<Value> {
  readonly #maxHalf: number;
  readonly #ttlMs: number;
  #older = new Map<string, Entry<Value>>();
  #newer = new Map<string, Entry<Value>>();

  /** @param max entries, at least 2 */
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

  /** @param sinceMs monotonic milliseconds at which the lookup began */
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
