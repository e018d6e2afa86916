/** The budgets that this process uses, by tenant and period. */

import { Fault } from '../domain/errors.ts';
import type { AccountUnit } from './account.ts';
import { type BudgetKey, type BudgetSums, PeriodBudget } from './budget.ts';
import { NumbersOfBudgets } from './budget-numbers.ts';

export class BudgetRegistry {
  readonly #max: number;
  readonly #onReleased: (budget: PeriodBudget) => void;
  readonly #budgets = new Map<string, PeriodBudget>();
  readonly #ofTenant = new Map<string, number>();
  readonly #numbers = new NumbersOfBudgets();
  readonly #sums: Readonly<Record<AccountUnit, BudgetSums>> = {
    tokens: { held: 0, reserved: 0 },
    money: { held: 0, reserved: 0 },
    requests: { held: 0, reserved: 0 },
    places: { held: 0, reserved: 0 },
  };

  constructor(max: number, onReleased: (budget: PeriodBudget) => void) {
    this.#max = max;
    this.#onReleased = onReleased;
  }

  get size(): number {
    return this.#budgets.size;
  }

  get sums() {
    const { tokens, ...others } = this.#sums;
    return { budgets: this.#budgets.size, ...tokens, ...others };
  }

  all(): MapIterator<PeriodBudget> {
    return this.#budgets.values();
  }

  /**
   * Finds the budget, or creates it. Throws a Fault if too many are in use. A tenant can choose how many it uses, so it
   * leaves half of the free places to others.
   */
  find(key: BudgetKey, now: number): PeriodBudget {
    const name = nameOf(key);
    const known = this.#budgets.get(name);
    if (known !== undefined) {
      known.endsMs = key.endsMs;
      return known;
    }
    const ofTenant = this.#ofTenant.get(key.tenant) ?? 0;
    if (this.#budgets.size + ofTenant >= this.#max) throw new Fault('too many budgets are in use');
    const parts = { sums: this.#sums[key.unit], numbers: this.#numbers.take(), onReleased: this.#onReleased };
    const budget = new PeriodBudget(key, now, parts);
    this.#budgets.set(name, budget);
    this.#ofTenant.set(key.tenant, ofTenant + 1);
    return budget;
  }

  /** @param budget an idle one, which holds and reserves nothing */
  forget(budget: PeriodBudget): void {
    this.#budgets.delete(nameOf(budget));
    const left = (this.#ofTenant.get(budget.tenant) ?? 0) - 1;
    if (left > 0) this.#ofTenant.set(budget.tenant, left);
    else this.#ofTenant.delete(budget.tenant);
    this.#numbers.give(budget.forget());
  }
}

function nameOf({ tenant, period }: Pick<BudgetKey, 'tenant' | 'period'>): string {
  return `${tenant} ${period}`;
}
