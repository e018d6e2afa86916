/** So many at a time and no more: whoever comes later waits until the deadline. Bounds the connections to one directory. */

import { Fault } from '../domain/errors.ts';
import type { Deadline } from './deadline.ts';

export interface Turns {
  /** @throws Fault when too many wait already, or when the deadline comes first */
  readonly take: <T>(deadline: Deadline, task: () => Promise<T>) => Promise<T>;
}

export function makeTurns(maxRunning: number, maxWaiting: number): Turns {
  const waiting = new Set<() => void>();
  let running = 0;

  const turn = async (deadline: Deadline): Promise<void> => {
    if (running < maxRunning) {
      running++;
      return;
    }
    if (waiting.size >= maxWaiting) throw new Fault('too many questions to the directory at once');
    const { promise, resolve } = Promise.withResolvers<void>();
    waiting.add(resolve);
    try {
      await deadline.within(promise);
    } catch (error) {
      // Handed over at the very moment the deadline passed: it goes to the next.
      if (!waiting.delete(resolve)) release();
      throw error;
    }
  };
  /** Whoever waits longest takes over the place. */
  const release = (): void => {
    const [next] = waiting;
    if (next === undefined) {
      running--;
      return;
    }
    waiting.delete(next);
    next();
  };

  return {
    take: async (deadline, task) => {
      await turn(deadline);
      try {
        return await task();
      } finally {
        release();
      }
    },
  };
}
