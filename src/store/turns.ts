/**
 * Admits a limited number of transactions at once. The others wait in order. Their number and the time that each waits are bounded. A burst
 * of changes therefore waits in memory, and takes no connections or locks that other work needs.
 *
 * A lane is the transactions of one tenant. It takes a place, or waits for one, only if more are free than it has. A tenant whose
 * transactions wait for a lock therefore leaves half of the places and of the waiting room to others, the next such tenant half of the rest.
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
  readonly maxWaiting: number;
  readonly maxWaitMs: number;
}

interface Waiter {
  readonly lane: string | undefined;
  admit(): void;
}

export function makeTurns({ places, maxWaiting, maxWaitMs }: TurnsOptions): Turns {
  const waiters = new Set<Waiter>();
  const running = makeRoom(places);
  const waiting = makeRoom(maxWaiting);

  async function turn(lane: string | undefined): Promise<void> {
    if (running.enter(lane)) return;
    if (!waiting.enter(lane)) throw new Fault('too many statements are already waiting for a database connection');
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter: Waiter = { lane, admit: resolve };
    waiters.add(waiter);
    const late = setTimeout(() => {
      stopWaiting(waiter);
      reject(new Fault(`no database connection was free within ${maxWaitMs} ms`));
    }, maxWaitMs);
    await promise.finally(() => clearTimeout(late));
  }

  function stopWaiting(waiter: Waiter): void {
    waiters.delete(waiter);
    waiting.leave(waiter.lane);
  }

  function leave(lane: string | undefined): void {
    running.leave(lane);
    for (const waiter of waiters) {
      if (running.isFull()) return;
      if (!running.enter(waiter.lane)) continue;
      stopWaiting(waiter);
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

interface Room {
  /** @returns false if there is no place for the lane */
  enter(lane: string | undefined): boolean;
  leave(lane: string | undefined): void;
  isFull(): boolean;
}

function makeRoom(places: number): Room {
  const takenBy = new Map<string, number>();
  let free = places;
  return {
    enter(lane) {
      const own = lane === undefined ? 0 : (takenBy.get(lane) ?? 0);
      if (free <= own) return false;
      free--;
      if (lane !== undefined) takenBy.set(lane, own + 1);
      return true;
    },
    leave(lane) {
      free++;
      if (lane === undefined) return;
      const left = (takenBy.get(lane) ?? 0) - 1;
      if (left > 0) takenBy.set(lane, left);
      else takenBy.delete(lane);
    },
    isFull: () => free === 0,
  };
}
