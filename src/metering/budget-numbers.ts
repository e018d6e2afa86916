/**
 * The numbers of budgets that checks read, in arrays that many budgets share. An object keeps each of its numbers in a
 * place of its own, and a check reads up to 16 budgets, so most of its time would go into waiting for memory.
 */

/** The places of the numbers that checks read. */
export const HELD = 0;
export const RESERVED = 1;
/** Not a number before the store's first answer. */
export const USED = 2;
export const QUOTA = 3;
export const LAST_RESERVATION = 4;
export const USED_AT_MS = 5;
/** The demand: its rate, and the amount that was requested since the rate was computed. */
export const PER_MS = 6;
export const PENDING = 7;
export const SINCE_MS = 8;

export const NUMBERS = 9;
/** The number of budgets in one array. */
const CHUNK = 256;

/** The numbers of one budget begin at `at`. */
export interface BudgetNumbers {
  readonly numbers: Float64Array;
  readonly at: number;
}

export class NumbersOfBudgets {
  #chunk = new Float64Array(0);
  #used = 0;
  readonly #free: BudgetNumbers[] = [];

  /** Returns numbers that no other budget uses, all 0. */
  take(): BudgetNumbers {
    const free = this.#free.pop();
    if (free !== undefined) {
      free.numbers.fill(0, free.at, free.at + NUMBERS);
      return free;
    }
    if (this.#used >= this.#chunk.length) {
      this.#chunk = new Float64Array(CHUNK * NUMBERS);
      this.#used = 0;
    }
    const at = this.#used;
    this.#used += NUMBERS;
    return { numbers: this.#chunk, at };
  }

  give(numbers: BudgetNumbers): void {
    this.#free.push(numbers);
  }
}
