/**
 * The budgets with the smallest share left, for metrics. The review of all budgets offers each of them in bounded
 * steps, so a scrape reads only the result of the last complete review.
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
  /** The largest shares of the current review, fewer than twice MAX_NEAREST, unordered. */
  #found: QuotaShare[] = [];
  #complete: readonly QuotaShare[] = [];

  offer(share: QuotaShare): void {
    this.#found.push(share);
    if (this.#found.length >= 2 * MAX_NEAREST) this.#found = nearest(this.#found);
  }

  publish(): void {
    this.#complete = nearest(this.#found);
    this.#found = [];
  }

  /** Returns at most MAX_NEAREST shares of the last complete review, the largest first. */
  get shares(): readonly QuotaShare[] {
    return this.#complete;
  }
}

function nearest(shares: readonly QuotaShare[]): QuotaShare[] {
  return shares.toSorted((a, b) => b.ratio - a.ratio).slice(0, MAX_NEAREST);
}
