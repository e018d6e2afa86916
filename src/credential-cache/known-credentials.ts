/**
 * Remembers which credentials were valid here before, so that they are loaded again with a capacity of their own when a change or their
 * age has removed them. A digest is random, so 32 bits of it at a place that other bits choose are enough: two digests at one place
 * replace each other, and a digest that never was here passes for known once in 4 billion times. Either costs capacity, never truth.
 */
export class KnownCredentials {
  readonly #marks: Uint32Array;
  readonly #mask: number;

  /** @param max how many credentials are kept; the memory is 16 to 32 bytes for each */
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

/** Never 0, which is an empty place. */
function mark(digest: string): number {
  return Number.parseInt(digest.slice(8, 16), 16) || 1;
}
