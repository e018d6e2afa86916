/**
 * Limits bytes by a rate: a token bucket for each id, in memory. An id without debt takes no memory. An id may exceed
 * its burst by one amount of any size, and then waits until the amount is paid.
 */

interface ByteRateOptions {
  readonly bytesPerSecond: number;
  /** The time by which an id may be ahead of its rate, in milliseconds. */
  readonly burstMs: number;
}

const SWEEP_EVERY_MS = 1000;

export class ByteRates {
  readonly #bytesPerMs: number;
  readonly #burstMs: number;
  readonly #paidAtMs = new Map<string, number>();
  #sweptAtMs = 0;

  constructor({ bytesPerSecond, burstMs }: ByteRateOptions) {
    this.#bytesPerMs = bytesPerSecond / 1000;
    this.#burstMs = burstMs;
  }

  get size(): number {
    return this.#paidAtMs.size;
  }

  /**
   * @param nowMs by a clock that never goes back
   * @returns milliseconds until the id may take bytes; 0 or less: it may now
   */
  waitMs(id: string, nowMs: number): number {
    return (this.#paidAtMs.get(id) ?? nowMs) - nowMs - this.#burstMs;
  }

  take(id: string, bytes: number, nowMs: number): void {
    if (nowMs - this.#sweptAtMs >= SWEEP_EVERY_MS) {
      this.#sweptAtMs = nowMs;
      for (const [each, paidAtMs] of this.#paidAtMs) if (paidAtMs <= nowMs) this.#paidAtMs.delete(each);
    }
    this.#paidAtMs.set(id, Math.max(nowMs, this.#paidAtMs.get(id) ?? nowMs) + bytes / this.#bytesPerMs);
  }
}
