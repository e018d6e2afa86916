/** Checks that wait for the store's word on their budget, first come, first served. */

import { Fault } from '../domain/errors.ts';
import type { Budget } from './budget.ts';

interface Waiter {
  readonly budget: Budget;
  readonly amount: number;
  readonly counter: number;
  readonly resolve: (reserved: boolean) => void;
  readonly reject: (error: unknown) => void;
  /** Its wish is in the statement that is under way. */
  isRequested: boolean;
  /** Statements that carried its wish and came back. */
  answers: number;
}

/** Undefined when only the store can say; throws a Fault when it is away and nobody can. */
export type ReserveAttempt = (budget: Budget, amount: number, counter: number) => boolean | undefined;

const MAX_WAITING = 10_000;
/** What others spend and give back meanwhile may turn each answer around; after so many there is too little. */
const MAX_ANSWERS = 4;

export class TokenWaiters {
  #waiting: Waiter[] = [];

  get size(): number {
    return this.#waiting.length;
  }

  /** True: reserved; false: there is too little. Rejects with a Fault, and throws one when too many wait already. */
  add(budget: Budget, amount: number, counter: number): Promise<boolean> {
    if (this.#waiting.length >= MAX_WAITING) throw new Fault(`${MAX_WAITING} requests are already waiting for tokens`);
    return new Promise((resolve, reject) => {
      budget.waiting += 1;
      budget.waitingTokens += amount;
      this.#waiting.push({ budget, amount, counter, resolve, reject, isRequested: false, answers: 0 });
    });
  }

  budgets(): Set<Budget> {
    return new Set(this.#waiting.map(({ budget }) => budget));
  }

  /** @param wished those for which the statement that leaves now asks */
  request(wished: ReadonlySet<Budget>): void {
    for (const waiter of this.#waiting) waiter.isRequested = wished.has(waiter.budget);
  }

  /** The statement that carried their wishes is over: whoever can be answered is. */
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
