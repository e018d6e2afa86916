/** How much of one subject is asked for, smoothed over about a second. */

const SMOOTHING_MS = 1000;

export class Demand {
  #perMs = 0;
  #pending = 0;
  #sinceMs: number;

  constructor(nowMs: number) {
    this.#sinceMs = nowMs;
  }

  note(amount = 1): void {
    this.#pending += amount;
  }

  /** What is expected in the next `ms`. */
  within(ms: number, nowMs: number): number {
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
