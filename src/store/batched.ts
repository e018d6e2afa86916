/**
 * Many readers, one statement: rows that are asked for one at a time, by requests that do not know of each other, are read together.
 *
 * Who asks while nothing is under way is served at once; who asks meanwhile waits for the next statement, which carries all that came.
 * So nobody gets an answer from before the question, and the fuller the server, the fewer statements there are for each reader. In a
 * transaction every look-up is a statement of its own.
 */

import type pg from 'pg';
import { Fault } from '../domain/errors.ts';
import { isTransaction, type Prepared, runPrepared } from './prepared.ts';
import type { Queryable } from './queryable.ts';

/** How a row is found by two texts. */
export interface PairStatements {
  /** By `$1` and `$2`. */
  readonly one: Prepared;
  /** Reads from `ASKED`, and answers each row with its number as `asked_as`. */
  readonly many: Prepared;
}

export type PairReader<R> = (q: Queryable, first: string, second: string) => Promise<R | undefined>;

interface Numbered {
  /** Counted from 1. */
  readonly asked_as: number;
}

interface Waiting<R> {
  readonly first: string;
  readonly second: string;
  readonly resolve: (row: R | undefined) => void;
  readonly reject: (error: unknown) => void;
}

interface Lane<R> {
  waiting: Waiting<R>[];
  underWay: number;
}

const MAX_AT_ONCE = 100;
/** Statements of one reader under way: one is being answered while the next is asked. */
const MAX_UNDER_WAY = 2;
const MAX_WAITING = 10_000;

/** The rows to be found, for `from ${ASKED}`. */
export const ASKED = 'unnest($1::text[], $2::text[]) with ordinality as asked(first, second, asked_as)';

/**
 * The texts must be such as PostgreSQL takes (ids that were parsed), since one that it refuses fails all that are read with it.
 * @returns a reader; it fails like knex, and with a Fault when too many wait
 */
export function readsPairs<R extends pg.QueryResultRow>(statements: PairStatements): PairReader<R> {
  const lanes = new WeakMap<Queryable, Lane<R>>();
  return async (q, first, second) => {
    if (isTransaction(q)) {
      const [row] = await runPrepared<R>(q, statements.one, [first, second]);
      return row;
    }
    const lane = lanes.get(q) ?? { waiting: [], underWay: 0 };
    lanes.set(q, lane);
    if (lane.waiting.length >= MAX_WAITING) throw new Fault(`${MAX_WAITING} readers wait for their rows already`);
    return new Promise<R | undefined>((resolve, reject) => {
      lane.waiting.push({ first, second, resolve, reject });
      if (lane.waiting.length === 1) queueMicrotask(() => serve(q, lane, statements));
    });
  };
}

function serve<R extends pg.QueryResultRow>(q: Queryable, lane: Lane<R>, statements: PairStatements): void {
  while (lane.waiting.length > 0 && lane.underWay < MAX_UNDER_WAY) {
    const asked = lane.waiting.splice(0, MAX_AT_ONCE);
    lane.underWay += 1;
    void answer(q, asked, statements).finally(() => {
      lane.underWay -= 1;
      serve(q, lane, statements);
    });
  }
}

/** Never rejects. */
async function answer<R extends pg.QueryResultRow>(
  q: Queryable,
  asked: readonly Waiting<R>[],
  { one, many }: PairStatements,
): Promise<void> {
  try {
    const [alone, ...others] = asked;
    if (alone !== undefined && others.length === 0) {
      const [row] = await runPrepared<R>(q, one, [alone.first, alone.second]);
      alone.resolve(row);
      return;
    }
    const values = [asked.map(({ first }) => first), asked.map(({ second }) => second)];
    const rows = new Map((await runPrepared<R & Numbered>(q, many, values)).map((row) => [row.asked_as, row]));
    for (const [i, { resolve }] of asked.entries()) resolve(rows.get(i + 1));
  } catch (error) {
    for (const { reject } of asked) reject(error);
  }
}
