/**
 * Bounds the share of the deciding thread that one key's refills take: after a refill that took long, the next one of the same key waits
 * `REST_FACTOR` times as long. Refills that take little are not held up.
 */

import { SLICE_MS } from './slices.ts';

/** A key's refills take at most a tenth of the time, as long as one takes up to 33 ms. */
const REST_FACTOR = 9;
/** Less than checks wait. */
const MAX_REST_MS = 300;
const MAX_KEYS = 1000;

export class Cooldown {
  /** Monotonic milliseconds until which a key rests; the key that was noted last is at the end. */
  readonly #untilMs = new Map<string, number>();

  /** Keys that are remembered. */
  get size(): number {
    return this.#untilMs.size;
  }

  /** Notes that a refill of the key took `spentMs` of processor time. */
  note(key: string, spentMs: number, nowMs: number): void {
    if (spentMs <= SLICE_MS) return;
    this.#untilMs.delete(key);
    for (const [oldest] of this.#untilMs) {
      if (this.#untilMs.size < MAX_KEYS) break;
      this.#untilMs.delete(oldest);
    }
    this.#untilMs.set(key, nowMs + Math.min(MAX_REST_MS, spentMs * REST_FACTOR));
  }

  /** How long a refill of the key still has to wait, in milliseconds; 0 = it may begin. */
  restMs(key: string, nowMs: number): number {
    const untilMs = this.#untilMs.get(key);
    if (untilMs === undefined) return 0;
    if (nowMs < untilMs) return untilMs - nowMs;
    this.#untilMs.delete(key);
    return 0;
  }
}
