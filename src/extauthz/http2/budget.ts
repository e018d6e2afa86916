/** A token bucket, which bounds the rate of an event. */

export interface Rate {
  /** The number at once. */
  readonly burst: number;
  readonly perSecond: number;
}

export class Budget {
  readonly #rate: Rate;
  #left: number;
  #atMs: number;

  /** @param nowMs the time of a monotonic clock, which every later call uses as well */
  constructor(rate: Rate, nowMs: number) {
    this.#rate = rate;
    this.#left = rate.burst;
    this.#atMs = nowMs;
  }

  /** Takes `cost` and returns true, or returns false and takes nothing if less is left. */
  take(nowMs: number, cost = 1): boolean {
    if (this.#left < cost) this.#refill(nowMs);
    if (this.#left < cost) return false;
    this.#left -= cost;
    return true;
  }

  /** Reports whether anything is left. */
  hasLeft(nowMs: number): boolean {
    if (this.#left < 1) this.#refill(nowMs);
    return this.#left >= 1;
  }

  /** Adds tokens for other events, up to the burst. */
  give(amount: number): void {
    this.#left = Math.min(this.#rate.burst, this.#left + amount);
  }

  #refill(nowMs: number): void {
    const { burst, perSecond } = this.#rate;
    this.#left = Math.min(burst, this.#left + (Math.max(0, nowMs - this.#atMs) * perSecond) / 1000);
    this.#atMs = nowMs;
  }
}
