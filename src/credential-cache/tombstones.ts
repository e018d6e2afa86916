/**
 * The last change of each key: key -> sequence number. Bounded: the older half is dropped at once, and the floor then
 * rises to the highest number in it, so that the floor replaces every dropped tombstone. `newest` may therefore be too
 * high for a key, and is never too low.
 */
export class Tombstones {
  readonly #maxHalf: number;
  #older = new Map<string, number>();
  #newer = new Map<string, number>();
  #floor = 0;

  /** @param max tombstones, at least 2 */
  constructor(max: number) {
    this.#maxHalf = Math.max(1, Math.floor(max / 2));
  }

  get size(): number {
    return this.#older.size + this.#newer.size;
  }

  get floor(): number {
    return this.#floor;
  }

  /**
   * Returns the highest number that a change of this key can have had. Data from before that change must not be used.
   */
  newest(key: string): number {
    return Math.max(this.#floor, this.#newer.get(key) ?? 0, this.#older.get(key) ?? 0);
  }

  add(key: string, seq: number): void {
    if (this.#newer.size >= this.#maxHalf && !this.#newer.has(key)) {
      for (const gone of this.#older.values()) this.#floor = Math.max(this.#floor, gone);
      this.#older = this.#newer;
      this.#newer = new Map();
    }
    this.#newer.set(key, Math.max(seq, this.#newer.get(key) ?? 0));
  }

  /**
   * Starts again at a position of the feed. The position may be lower than known numbers, which have no meaning after a
   * failover.
   */
  reset(position: number): void {
    this.#older.clear();
    this.#newer.clear();
    this.#floor = position;
  }
}
