/**
 * Joins items that are requested one at a time into batches. An item runs at once if fewer than two batches are in
 * flight; otherwise it joins the next batch. A batch starts after all of its items were requested, so no item gets an
 * answer from before its request. Under load, batches grow and each item costs fewer statements.
 */

import { BoundedQueue } from '../concurrency/bounded-queue.ts';
import { Fault } from '../domain/errors.ts';

interface Waiting<Item, Answer> {
  readonly item: Item;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

export const MAX_BATCH = 100;
/** While PostgreSQL runs one batch, the next one is sent. */
const MAX_IN_FLIGHT = 2;
const MAX_WAITING = 10_000;

export class BatchQueue<Item, Answer> {
  readonly #answer: (items: readonly Item[]) => Promise<readonly Answer[]>;
  readonly #waiting = new BoundedQueue<Waiting<Item, Answer>>(MAX_WAITING);
  #inFlight = 0;

  /** @param answer answers 1 to MAX_BATCH items, in their order; if it rejects, all of them fail with its error */
  constructor(answer: (items: readonly Item[]) => Promise<readonly Answer[]>) {
    this.#answer = answer;
  }

  /** Rejects with a Fault if too many items wait. */
  request(item: Item): Promise<Answer> {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    if (!this.#waiting.push({ item, resolve, reject })) {
      return Promise.reject(new Fault(`${MAX_WAITING} lookups are already waiting for rows`));
    }
    if (this.#waiting.length === 1) queueMicrotask(() => this.#start());
    return promise;
  }

  #start(): void {
    while (this.#waiting.length > 0 && this.#inFlight < MAX_IN_FLIGHT) {
      const batch = this.#waiting.take(MAX_BATCH);
      this.#inFlight += 1;
      void this.#run(batch).finally(() => {
        this.#inFlight -= 1;
        this.#start();
      });
    }
  }

  /** Never rejects. */
  async #run(batch: readonly Waiting<Item, Answer>[]): Promise<void> {
    try {
      const answers = await this.#answer(batch.map(({ item }) => item));
      if (answers.length !== batch.length) throw new Fault('the database did not answer all lookups of a batch');
      for (const [i, answer] of answers.entries()) batch[i]?.resolve(answer);
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }
}
