/** The budgets that this process uses, by tenant and period. */

import { Fault } from '../domain/errors.ts';
import type { AccountUnit } from './account.ts';
import { type BudgetKey, type BudgetSums, PeriodBudget } from './budget.ts';
import { NumbersOfBudgets } from './budget-numbers.ts';

export class BudgetRegistry {
  readonly #max: number;
  readonly #onReleased: (budget: PeriodBudget) => void;
  readonly #budgets = new Map<string, PeriodBudget>();
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

  /** Finds the budget, or creates it. Throws a Fault if too many are in use. */
  find(key: BudgetKey, now: number): PeriodBudget {
    const name = nameOf(key);
    const known = this.#budgets.get(name);
    if (known !== undefined) {
      known.endsMs = key.endsMs;
      return known;
    }
    if (this.#budgets.size >= this.#max) throw new Fault('too many budgets are in use');
    const parts = { sums: this.#sums[key.unit], numbers: this.#numbers.take(), onReleased: this.#onReleased };
    const budget = new PeriodBudget(key, now, parts);
    this.#budgets.set(name, budget);
    return budget;
  }

  /** @param budget an idle one, which holds and reserves nothing */
  forget(budget: PeriodBudget): void {
    this.#budgets.delete(nameOf(budget));
    this.#numbers.give(budget.forget());
  }
}

function nameOf({ tenant, period }: Pick<BudgetKey, 'tenant' | 'period'>): string {
  return `${tenant} ${period}`;
}
