/**
 * Many readers, one statement: rows that are requested one at a time, by requests that do not know of each other, are read together.
 *
 * A lookup runs at once if fewer than two statements are in flight; otherwise it joins the next batch. A batch starts after all of its
 * lookups were requested, so no lookup returns data from before its request. Under load, batches grow and each lookup costs fewer
 * statements. In a transaction every lookup is a statement of its own.
 */

import type pg from 'pg';
import { Fault } from '../domain/errors.ts';
import { type Prepared, runPrepared } from './prepared.ts';
import type { Queryable } from './queryable.ts';

/** How a row is found by two texts. */
export interface PairStatements {
  /** By `$1` and `$2`. */
  readonly one: Prepared;
  /** Reads from `ASKED`, and answers each row with its number as `asked_as`. */
  readonly many: Prepared;
}

export type PairReader<R> = (q: Queryable, first: string, second: string) => Promise<R | undefined>;

/** A row with the position of the request that it answers. */
export interface Numbered {
  /** Counted from 1. */
  readonly asked_as: number;
}

interface Waiting<Item, Answer> {
  readonly item: Item;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

export const MAX_AT_ONCE = 100;
/** Statements of one queue in flight: one is being answered while the next is requested. */
const MAX_IN_FLIGHT = 2;
const MAX_WAITING = 10_000;

/** The rows to be found, for `from ${ASKED}`. */
export const ASKED = 'unnest($1::text[], $2::text[]) with ordinality as asked(first, second, asked_as)';

/** Collects items that are requested one at a time, and has them answered together. */
export class BatchQueue<Item, Answer> {
  readonly #answer: (items: readonly Item[]) => Promise<readonly Answer[]>;
  readonly #waiting: Waiting<Item, Answer>[] = [];
  #inFlight = 0;

  /** @param answer answers 1 to MAX_AT_ONCE items, in their order; when it rejects, all of them fail with its error */
  constructor(answer: (items: readonly Item[]) => Promise<readonly Answer[]>) {
    this.#answer = answer;
  }

  /** Rejects with a Fault when too many items wait. */
  ask(item: Item): Promise<Answer> {
    if (this.#waiting.length >= MAX_WAITING)
      return Promise.reject(new Fault(`${MAX_WAITING} lookups are already waiting for rows`));
    return new Promise<Answer>((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject });
      if (this.#waiting.length === 1) queueMicrotask(() => this.#serve());
    });
  }

  #serve(): void {
    while (this.#waiting.length > 0 && this.#inFlight < MAX_IN_FLIGHT) {
      const batch = this.#waiting.splice(0, MAX_AT_ONCE);
      this.#inFlight += 1;
      void this.#settle(batch).finally(() => {
        this.#inFlight -= 1;
        this.#serve();
      });
    }
  }

  /** Never rejects. */
  async #settle(batch: readonly Waiting<Item, Answer>[]): Promise<void> {
    try {
      const answers = await this.#answer(batch.map(({ item }) => item));
      if (answers.length !== batch.length) throw new Fault('the database did not answer all lookups of a batch');
      for (const [i, answer] of answers.entries()) batch[i]?.resolve(answer);
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }
}

/** The rows in the order of their requests; undefined for a request without a row. */
export function inRequestedOrder<R extends Numbered>(rows: readonly R[], requests: number): readonly (R | undefined)[] {
  const found = new Map(rows.map((row) => [row.asked_as, row]));
  return Array.from({ length: requests }, (_none, i) => found.get(i + 1));
}

type Pair = readonly [first: string, second: string];

/**
 * The texts must be such as PostgreSQL takes (ids that were parsed), since one that it refuses fails all that are read with it.
 * @returns a reader; it fails like knex, and with a Fault when too many wait
 */
export function readsPairs<R extends pg.QueryResultRow>(statements: PairStatements): PairReader<R> {
  const queues = new WeakMap<Queryable, BatchQueue<Pair, R | undefined>>();
  return async (q, first, second) => {
    if (q.isTransaction === true) {
      const [row] = await runPrepared<R>(q, statements.one, [first, second]);
      return row;
    }
    const queue = queues.get(q) ?? new BatchQueue<Pair, R | undefined>((pairs) => answerPairs(q, pairs, statements));
    queues.set(q, queue);
    return queue.ask([first, second]);
  };
}

async function answerPairs<R extends pg.QueryResultRow>(
  q: Queryable,
  pairs: readonly Pair[],
  { one, many }: PairStatements,
): Promise<readonly (R | undefined)[]> {
  const [alone, ...others] = pairs;
  if (alone !== undefined && others.length === 0) {
    const [row] = await runPrepared<R>(q, one, alone);
    return [row];
  }
  const values = [pairs.map(([first]) => first), pairs.map(([, second]) => second)];
  return inRequestedOrder(await runPrepared<R & Numbered>(q, many, values), pairs.length);
}
