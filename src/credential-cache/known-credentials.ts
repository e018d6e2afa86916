/**
 * Remembers which credentials were valid in this process, so that they are loaded with capacity of their own after a
 * change or their age removed them. A digest is random, so the table stores 32 bits of it in a slot that other bits
 * choose. Two digests of one slot replace each other, and an unknown digest counts as known once in 4 billion times.
 * Either costs capacity and never a wrong decision.
 */
export class KnownCredentials {
  readonly #marks: Uint32Array;
  readonly #mask: number;

  /** @param max credentials to remember; the table has 16 to 32 bytes for each */
  constructor(max: number) {
    const slots = 2 ** Math.ceil(Math.log2(Math.max(1, max) * 4));
    this.#marks = new Uint32Array(slots);
    this.#mask = slots - 1;
  }

  /** @param digest at least 16 hexadecimal digits */
  add(digest: string): void {
    this.#marks[this.#slot(digest)] = mark(digest);
  }

  has(digest: string): boolean {
    return this.#marks[this.#slot(digest)] === mark(digest);
  }

  #slot(digest: string): number {
    return Number.parseInt(digest.slice(0, 8), 16) & this.#mask;
  }
}

/** Never 0, which marks an empty slot. */
function mark(digest: string): number {
  return Number.parseInt(digest.slice(8, 16), 16) || 1;
}
