/**
 * Bounds the share of the deciding thread's time that the refills of one key take. After a long refill, the next refill
 * of the same key waits `REST_FACTOR` times as long. Short refills do not wait.
 */

import { SLICE_MS } from './slices.ts';

/** A key's refills take at most a tenth of the time, if one refill takes at most 33 ms. */
const REST_FACTOR = 9;
/** Shorter than the time that a check waits. */
const MAX_REST_MS = 300;
const MAX_KEYS = 1000;

export class Cooldown {
  /** Monotonic milliseconds until which a key rests, the last recorded key last. */
  readonly #untilMs = new Map<string, number>();

  get size(): number {
    return this.#untilMs.size;
  }

  /** Records that a refill of the key took `spentMs` of processor time. */
  note(key: string, spentMs: number, nowMs: number): void {
    if (spentMs <= SLICE_MS) return;
    this.#untilMs.delete(key);
    for (const [oldest] of this.#untilMs) {
      if (this.#untilMs.size < MAX_KEYS) break;
      this.#untilMs.delete(oldest);
    }
    this.#untilMs.set(key, nowMs + Math.min(MAX_REST_MS, spentMs * REST_FACTOR));
  }

  /** Returns how long the next refill of the key must wait, in milliseconds; 0 = it may begin. */
  restMs(key: string, nowMs: number): number {
    const untilMs = this.#untilMs.get(key);
    if (untilMs === undefined) return 0;
    if (nowMs < untilMs) return untilMs - nowMs;
    this.#untilMs.delete(key);
    return 0;
  }
}
