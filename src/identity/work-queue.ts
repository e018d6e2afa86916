/** A bounded queue for work that costs processor time and memory: so much at once, so much waiting, and no more. */

/**
 * So many results are handed over together while tasks wait. A task like a password's hash empties the processor's caches, so whatever is
 * done with a result afterwards begins cold, at each step of its request; of two that go together, the second finds them warm, which spares
 * the main thread of a server full of logins a quarter of its work. The price: the first of two waits for the one task that ran after it.
 */
const TOGETHER = 2;

export interface WorkQueue {
  /** Runs the task when its turn comes; undefined, at once, when the queue is full. */
  readonly run: <T>(task: () => Promise<T>) => Promise<T> | undefined;
}

/**
 * @param maxRunning tasks at a time
 * @param maxWaiting tasks beyond those
 */
export function makeWorkQueue(maxRunning: number, maxWaiting: number): WorkQueue {
  const waiting: (() => void)[] = [];
  const held: (() => void)[] = [];
  let running = 0;

  /** When the result of a task that just ended is to be handed over. It is only held back while another runs, whose end brings it. */
  const turnOfResult = async (busy: boolean): Promise<void> => {
    if (busy && held.length + 1 < TOGETHER) {
      await new Promise<void>((resolve) => held.push(resolve));
    } else {
      for (const release of held.splice(0)) release();
    }
  };

  const begin = async <T>(task: () => Promise<T>): Promise<T> => {
    running++;
    try {
      return await task();
    } finally {
      running--;
      const next = waiting.shift();
      next?.();
      await turnOfResult(next !== undefined);
    }
  };

  const enqueue = <T>(task: () => Promise<T>): Promise<T> =>
    new Promise((resolve, reject) => {
      waiting.push(() => {
        begin(task).then(resolve, reject);
      });
    });

  return {
    run: (task) => {
      if (running < maxRunning) {
        return begin(task);
      }
      return waiting.length < maxWaiting ? enqueue(task) : undefined;
    },
  };
}
