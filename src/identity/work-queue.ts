/** A bounded queue for work that costs processor time and memory: so much at once, so much waiting, and no more. */

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
  let running = 0;

  const begin = async <T>(task: () => Promise<T>): Promise<T> => {
    running++;
    try {
      return await task();
    } finally {
      running--;
      waiting.shift()?.();
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
