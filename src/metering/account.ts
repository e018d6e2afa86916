/** Amounts that a request sets aside until its end. */

import type { BudgetUnit } from '../domain/records.ts';

/** `places`: requests that may run at the same time. */
export type AccountUnit = BudgetUnit | 'places';

/** An amount from which a request reserves, and that the request's end corrects. */
export interface Account {
  readonly unit: AccountUnit;
  /**
   * Whether the store books what was spent, so that a reservation lasts until then. Otherwise it lasts until the end of
   * the request.
   */
  readonly isBooked: boolean;
  /**
   * Ends a reservation.
   * @param spent the part of the amount that was spent; more than the amount if the request spent more
   */
  release(amount: number, spent: number): void;
}

/** The amounts of one request. It has one of each place and one of each request. */
export interface Amounts {
  readonly tokens: number;
  /** In 10^-9 of the currency. */
  readonly money: number;
}

export function amountIn(unit: AccountUnit, { tokens, money }: Amounts): number {
  switch (unit) {
    case 'tokens':
      return tokens;
    case 'money':
      return money;
    case 'requests':
    case 'places':
      return 1;
    default:
      return unit satisfies never;
  }
}
