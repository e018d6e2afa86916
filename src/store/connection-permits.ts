import { inTime } from '../concurrency/in-time.ts';
import { Semaphore, type SemaphoreOptions } from '../concurrency/semaphore.ts';
import { Fault } from '../domain/errors.ts';

/**
 * Bounds the work that holds a database connection at once. The rest waits in memory, and takes no connections or locks
 * that other work needs.
 */
export interface ConnectionPermits {
  /**
   * Runs `work` with a permit. Rejects with a Fault if the queue is full, or if no permit comes in time.
   * @param tenant whose work this is: a tenant whose transactions wait for a lock leaves permits to other tenants
   *   (semaphore.ts). Default: the work may use every permit.
   */
  run<T>(work: () => Promise<T>, tenant?: string): Promise<T>;
}

export function createConnectionPermits(options: SemaphoreOptions & { readonly maxWaitMs: number }): ConnectionPermits {
  const semaphore = new Semaphore(options);
  const { maxWaitMs } = options;
  const late = (): never => {
    throw new Fault(`no database connection was free within ${maxWaitMs} ms`);
  };
  return {
    async run(work, tenant) {
      const result = semaphore.run(work, tenant, (turn) => inTime(turn, maxWaitMs, late));
      if (result === undefined) throw new Fault('too many statements are already waiting for a database connection');
      return await result;
    },
  };
}
