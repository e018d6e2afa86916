/** A bounded queue for password hashes: tasks that cost processor time and memory. */

import { Semaphore } from '../concurrency/semaphore.ts';

/**
 * Results that are handed over together while tasks wait. A password's hash empties the processor's caches, so the code
 * that handles its result starts with cold caches. Of two results that are handed over together, the second finds them
 * warm, which saves a quarter of the main thread's work under a load of logins. The first of two results waits for one
 * more task.
 */
const TOGETHER = 2;

export interface WorkQueue {
  /**
   * Runs the task when a permit is free. Returns undefined, at once, if the queue is full.
   * @param key leaves half of the free permits and places to others, as in `Semaphore`
   */
  readonly run: <T>(task: () => Promise<T>, key?: string) => Promise<T> | undefined;
}

/**
 * @param maxRunning tasks at a time
 * @param maxWaiting tasks that wait beside those
 */
export function makeWorkQueue(maxRunning: number, maxWaiting: number): WorkQueue {
  const semaphore = new Semaphore({ permits: maxRunning, maxWaiting });
  const held: (() => void)[] = [];

  /**
   * Resolves when a result may be handed over. A result is held back only while another task runs, whose end releases
   * it.
   */
  const handOver = async (busy: boolean): Promise<void> => {
    if (busy && held.length + 1 < TOGETHER) {
      await new Promise<void>((resolve) => held.push(resolve));
    } else {
      for (const release of held.splice(0)) release();
    }
  };

  const begin = async <T>(task: () => Promise<T>, key: string | undefined): Promise<T> => {
    try {
      return await task();
    } finally {
      await handOver(semaphore.release(key));
    }
  };

  return {
    run: (task, key) =>
      semaphore.tryAcquire(key) ? begin(task, key) : semaphore.wait(key)?.then(() => begin(task, key)),
  };
}
