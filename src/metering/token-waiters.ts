/** Checks that wait for the store's answer on their budget, in the order of their arrival. */

import { Fault } from '../domain/errors.ts';
import type { TokenBudget } from './budget.ts';

interface Waiter {
  readonly budget: TokenBudget;
  readonly amount: number;
  readonly counter: number;
  readonly resolve: (reserved: boolean) => void;
  readonly reject: (error: unknown) => void;
  /** Whether the current statement has its request. */
  isRequested: boolean;
  /** The number of answered statements that had its request. */
  answers: number;
}

/**
 * Returns undefined if only the store can decide. Throws a Fault if the store is unreachable and the process cannot
 * decide.
 */
type ReserveAttempt = (budget: TokenBudget, amount: number, counter: number) => boolean | undefined;

const MAX_WAITING = 10_000;
/**
 * Other processes may change the budget while a statement runs, so that its answer is not enough. After this number of
 * answers, a check is rejected.
 */
const MAX_ANSWERS = 4;

export class TokenWaiters {
  #waiting: Waiter[] = [];

  get size(): number {
    return this.#waiting.length;
  }

  /**
   * Resolves to true if reserved, to false if too few tokens are left. Rejects with a Fault, and throws one if too many
   * checks wait.
   */
  add(budget: TokenBudget, amount: number, counter: number): Promise<boolean> {
    if (this.#waiting.length >= MAX_WAITING) throw new Fault(`${MAX_WAITING} requests are already waiting for tokens`);
    return new Promise((resolve, reject) => {
      budget.waiting += 1;
      budget.waitingTokens += amount;
      this.#waiting.push({ budget, amount, counter, resolve, reject, isRequested: false, answers: 0 });
    });
  }

  budgets(): Set<TokenBudget> {
    return new Set(this.#waiting.map(({ budget }) => budget));
  }

  /** @param requested the budgets for which the statement that is being sent requests tokens */
  markRequested(requested: ReadonlySet<TokenBudget>): void {
    for (const waiter of this.#waiting) waiter.isRequested = requested.has(waiter.budget);
  }

  /** Answers the waiting checks that can be answered, after a statement has ended. */
  serve(attempt: ReserveAttempt): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const waiter of waiting) {
      const { budget, amount, counter } = waiter;
      if (waiter.isRequested) waiter.answers += 1;
      waiter.isRequested = false;
      try {
        const reserved = attempt(budget, amount, counter);
        if (reserved === undefined && waiter.answers < MAX_ANSWERS) {
          this.#waiting.push(waiter);
          continue;
        }
        leave(waiter);
        waiter.resolve(reserved ?? false);
      } catch (error) {
        leave(waiter);
        waiter.reject(error);
      }
    }
  }
}

function leave({ budget, amount }: Waiter): void {
  budget.waiting -= 1;
  budget.waitingTokens -= amount;
}
