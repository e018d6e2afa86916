/**
 * Admits a limited number of transactions at once. The others wait in order. Their number and the time that each waits are bounded. A burst
 * of changes therefore waits in memory, and takes no connections or locks that other work needs.
 *
 * A lane is the transactions of one tenant. It has a part of the places, so that transactions of other tenants begin while one tenant's
 * transactions wait for a lock.
 */

import { Fault } from '../domain/errors.ts';

export interface Turns {
  /**
   * Runs `work` when its turn comes. Rejects with a Fault when too many wait already, or the turn does not come in time.
   * @param lane whose places the work uses; default: the work may use every place
   */
  take<T>(work: () => Promise<T>, lane?: string): Promise<T>;
}

export interface TurnsOptions {
  readonly places: number;
  /** Default: all places. */
  readonly placesPerLane?: number;
  readonly maxWaiting: number;
  readonly maxWaitMs: number;
}

interface Waiter {
  readonly lane: string | undefined;
  admit(): void;
}

export function makeTurns({ places, placesPerLane = places, maxWaiting, maxWaitMs }: TurnsOptions): Turns {
  const waiting = new Set<Waiter>();
  const takenBy = new Map<string, number>();
  let taken = 0;

  function hasRoom(lane: string | undefined): boolean {
    return taken < places && (lane === undefined || (takenBy.get(lane) ?? 0) < placesPerLane);
  }

  function enter(lane: string | undefined): void {
    taken++;
    if (lane !== undefined) takenBy.set(lane, (takenBy.get(lane) ?? 0) + 1);
  }

  async function turn(lane: string | undefined): Promise<void> {
    if (hasRoom(lane)) {
      enter(lane);
      return;
    }
    if (waiting.size >= maxWaiting) throw new Fault(`${maxWaiting} statements are already waiting for a database connection`);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter: Waiter = { lane, admit: resolve };
    waiting.add(waiter);
    const late = setTimeout(() => {
      waiting.delete(waiter);
      reject(new Fault(`no database connection was free within ${maxWaitMs} ms`));
    }, maxWaitMs);
    await promise.finally(() => clearTimeout(late));
  }

  function leave(lane: string | undefined): void {
    taken--;
    if (lane !== undefined) {
      const left = (takenBy.get(lane) ?? 0) - 1;
      if (left > 0) takenBy.set(lane, left);
      else takenBy.delete(lane);
    }
    for (const waiter of waiting) {
      if (taken >= places) return;
      if (!hasRoom(waiter.lane)) continue;
      waiting.delete(waiter);
      enter(waiter.lane);
      waiter.admit();
    }
  }

  return {
    async take(work, lane) {
      await turn(lane);
      try {
        return await work();
      } finally {
        leave(lane);
      }
    },
  };
}
