import type { Account } from './account.ts';
import type { RateLeases } from './rate-leases.ts';
import type { RateWindow } from './rate-window.ts';

/** The tokens that a request consumed of its limits of tokens per minute. */
export class RateAccount implements Account {
  readonly unit = 'tokens';
  readonly #leases: RateLeases;
  readonly #windows: readonly RateWindow[];

  constructor(leases: RateLeases, windows: readonly RateWindow[]) {
    this.#leases = leases;
    this.#windows = windows;
  }

  release(amount: number, spent: number): void {
    this.#leases.correct(this.#windows, amount - spent);
  }
}
