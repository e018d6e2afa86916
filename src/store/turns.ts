/**
 * Lets so many in at once; the others wait for their turn, in order, but neither in any number nor for any time. With it a burst of
 * changes waits here, where waiting costs nothing, and not on locks and connections that everything else needs.
 */

import { Fault } from '../domain/errors.ts';

export interface Turns {
  /** Runs `work` when its turn comes. Rejects with a Fault when too many wait already, or the turn does not come in time. */
  take<T>(work: () => Promise<T>): Promise<T>;
}

export interface TurnsOptions {
  readonly places: number;
  readonly maxWaiting: number;
  readonly maxWaitMs: number;
}

export function makeTurns({ places, maxWaiting, maxWaitMs }: TurnsOptions): Turns {
  const waiting = new Set<() => void>();
  let taken = 0;

  async function turn(): Promise<void> {
    if (taken < places) {
      taken++;
      return;
    }
    if (waiting.size >= maxWaiting) throw new Fault(`${maxWaiting} statements are already waiting for a database connection`);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    waiting.add(resolve);
    const late = setTimeout(() => {
      waiting.delete(resolve);
      reject(new Fault(`no database connection was free within ${maxWaitMs} ms`));
    }, maxWaitMs);
    await promise.finally(() => clearTimeout(late));
  }

  /** The place goes to who has waited longest, without being free in between. */
  function leave(): void {
    const [next] = waiting;
    if (next === undefined) {
      taken--;
      return;
    }
    waiting.delete(next);
    next();
  }

  return {
    async take(work) {
      await turn();
      try {
        return await work();
      } finally {
        leave();
      }
    },
  };
}
