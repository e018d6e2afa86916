/**
 * What changed lately, and when: key -> sequence number of its last change. Bounded: the older half goes at once, and then the floor
 * rises to the highest number in it and stands for every tombstone that is gone. So `newest` may say too much for a key, and never
 * too little.
 */
export class Tombstones {
  readonly #maxHalf: number;
  #older = new Map<string, number>();
  #newer = new Map<string, number>();
  #floor = 0;

  /** @param max how many are kept at most; at least 2 */
  constructor(max: number) {
    this.#maxHalf = Math.max(1, Math.floor(max / 2));
  }

  get size(): number {
    return this.#older.size + this.#newer.size;
  }

  get floor(): number {
    return this.#floor;
  }

  /** The highest number that a change of this key can have had. What was seen before it says nothing about the key. */
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

  /** Starts again at a position of the feed. It may lie behind the numbers known so far: after a fail-over those mean nothing. */
  reset(position: number): void {
    this.#older.clear();
    this.#newer.clear();
    this.#floor = position;
  }
}
