/** The rate at which units of one subject are requested, smoothed over about one second. */

const SMOOTHING_MS = 1000;

/**
 * Returns the smoothed rate after some time.
 * @param perMs the rate before
 * @param pending the units that were requested within `passedMs`
 */
export function smoothed(perMs: number, pending: number, passedMs: number): number {
  const weight = Math.min(1, passedMs / SMOOTHING_MS);
  return perMs * (1 - weight) + (pending / passedMs) * weight;
}

export class Demand {
  #perMs = 0;
  #pending = 0;
  #sinceMs: number;

  constructor(nowMs: number) {
    this.#sinceMs = nowMs;
  }

  record(amount = 1): void {
    this.#pending += amount;
  }

  expectedIn(ms: number, nowMs: number): number {
    const passed = nowMs - this.#sinceMs;
    if (passed > 0) {
      this.#perMs = smoothed(this.#perMs, this.#pending, passed);
      this.#pending = 0;
      this.#sinceMs = nowMs;
    }
    return this.#perMs * ms;
  }
}
