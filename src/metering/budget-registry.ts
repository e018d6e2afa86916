/** The budgets that this process uses, by tenant and period. */

import { Fault } from '../domain/errors.ts';
import { TokenBudget, type TokenSums } from './budget.ts';

export interface PeriodOfTenant {
  readonly tenant: string;
  readonly period: string;
  /** Milliseconds since the epoch. */
  readonly periodEndsMs: number;
}

export class BudgetRegistry {
  readonly #max: number;
  readonly #budgets = new Map<string, TokenBudget>();
  readonly #tokens: TokenSums = { held: 0, reserved: 0 };
  /** By tenant: the budget that was found last. */
  readonly #current = new Map<string, TokenBudget>();

  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#budgets.size;
  }

  get sums() {
    return { budgets: this.#budgets.size, ...this.#tokens };
  }

  all(): MapIterator<TokenBudget> {
    return this.#budgets.values();
  }

  /** Finds the budget, or creates it. Throws a Fault if too many are in use. */
  find({ tenant, period, periodEndsMs }: PeriodOfTenant, now: number): TokenBudget {
    const current = this.#current.get(tenant);
    if (current !== undefined && current.period === period) return current;
    const key = keyOf(tenant, period);
    const known = this.#budgets.get(key);
    if (known === undefined && this.#budgets.size >= this.#max) throw new Fault('too many token budgets are in use');
    const budget = known ?? new TokenBudget(tenant, period, periodEndsMs, now, this.#tokens);
    this.#budgets.set(key, budget);
    this.#current.set(tenant, budget);
    return budget;
  }

  /** @param budget an idle one, which holds and reserves nothing */
  forget(budget: TokenBudget): void {
    this.#budgets.delete(keyOf(budget.tenant, budget.period));
    if (this.#current.get(budget.tenant) === budget) this.#current.delete(budget.tenant);
  }
}

function keyOf(tenant: string, period: string): string {
  return `${tenant} ${period}`;
}
