/**
 * The budgets with the smallest share left, for metrics. The review of all budgets offers each of them in bounded steps, so a scrape reads
 * only the result of the last complete review.
 */

export interface QuotaShare {
  readonly tenant: string;
  /** Spent and held tokens divided by the quota. */
  readonly ratio: number;
  /** Milliseconds since the epoch. */
  readonly endsMs: number;
}

export const MAX_NEAREST = 100;

export class NearestQuotas {
  /** The shares of the current review, unordered. */
  #found: QuotaShare[] = [];
  /** The index of the smallest ratio in `#found`, if it is full. */
  #least = 0;
  #complete: readonly QuotaShare[] = [];

  offer(share: QuotaShare): void {
    if (this.#found.length < MAX_NEAREST) {
      this.#found.push(share);
      if (this.#found.length === MAX_NEAREST) this.#findLeast();
      return;
    }
    const least = this.#found[this.#least];
    if (least === undefined || share.ratio <= least.ratio) return;
    this.#found[this.#least] = share;
    this.#findLeast();
  }

  /** Completes the review. */
  publish(): void {
    this.#complete = this.#found.sort((a, b) => b.ratio - a.ratio);
    this.#found = [];
  }

  /** Returns at most MAX_NEAREST shares of the last complete review, the largest first. */
  get shares(): readonly QuotaShare[] {
    return this.#complete;
  }

  #findLeast(): void {
    let least = 0;
    for (const [i, { ratio }] of this.#found.entries()) if (ratio < (this.#found[least]?.ratio ?? ratio)) least = i;
    this.#least = least;
  }
}
