/** The rate at which units of one subject are requested, smoothed over about one second. */

const SMOOTHING_MS = 1000;

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

  /** Returns the units that are expected in the next `ms`. */
  expectedIn(ms: number, nowMs: number): number {
    const passed = nowMs - this.#sinceMs;
    if (passed > 0) {
      const weight = Math.min(1, passed / SMOOTHING_MS);
      this.#perMs = this.#perMs * (1 - weight) + (this.#pending / passed) * weight;
      this.#pending = 0;
      this.#sinceMs = nowMs;
    }
    return this.#perMs * ms;
  }
}
