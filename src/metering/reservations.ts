/**
 * What requests under way have reserved, by the number of their reservation. Numbers come nearly in order, so that they are kept in
 * blocks of plain numbers: there may be a million, and nothing of them is an object for the garbage collector to look at.
 */

import type { Budget } from './budget.ts';

export interface Ended {
  readonly budget: Budget;
  readonly amount: number;
}

interface Block {
  /** Undefined where nothing is, or no longer. */
  readonly budgets: (Budget | undefined)[];
  readonly amounts: Float64Array;
  readonly expiresAtMs: Float64Array;
  size: number;
  /** Before it is nothing. */
  first: number;
}

const BLOCK = 1024;

export class Reservations {
  /** By number, the oldest first. */
  readonly #blocks = new Map<number, Block>();
  #last: Block | undefined;
  #lastNumber = -1;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Those that come later expire later. */
  add(counter: number, budget: Budget, amount: number, expiresAtMs: number): void {
    const number = Math.floor(counter / BLOCK);
    const block = number === this.#lastNumber && this.#last !== undefined ? this.#last : this.#block(number);
    const at = counter % BLOCK;
    block.budgets[at] = budget;
    block.amounts[at] = amount;
    block.expiresAtMs[at] = expiresAtMs;
    if (at < block.first) block.first = at;
    block.size += 1;
    this.#size += 1;
  }

  take(counter: number): Ended | undefined {
    const number = Math.floor(counter / BLOCK);
    const block = this.#blocks.get(number);
    return block === undefined ? undefined : this.#take(number, block, counter % BLOCK);
  }

  /** The oldest, when it has expired by then. */
  takeExpired(nowMs: number): Ended | undefined {
    for (const [number, block] of this.#blocks) {
      while (block.budgets[block.first] === undefined) block.first += 1;
      return (block.expiresAtMs[block.first] ?? 0) <= nowMs ? this.#take(number, block, block.first) : undefined;
    }
    return undefined;
  }

  #take(number: number, block: Block, at: number): Ended | undefined {
    const budget = block.budgets[at];
    if (budget === undefined) return undefined;
    block.budgets[at] = undefined;
    block.size -= 1;
    this.#size -= 1;
    if (block.size === 0) {
      this.#blocks.delete(number);
      if (this.#lastNumber === number) this.#lastNumber = -1;
    }
    return { budget, amount: block.amounts[at] ?? 0 };
  }

  #block(number: number): Block {
    let block = this.#blocks.get(number);
    if (block === undefined) {
      block = {
        budgets: Array.from({ length: BLOCK }, () => undefined),
        amounts: new Float64Array(BLOCK),
        expiresAtMs: new Float64Array(BLOCK),
        size: 0,
        first: 0,
      };
      this.#blocks.set(number, block);
    }
    this.#last = block;
    this.#lastNumber = number;
    return block;
  }
}
