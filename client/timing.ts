/** Time and chance, handed in so that tests need not wait. */

export interface Timing {
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** From 0 to less than 1; spreads retries, nothing secret. */
  readonly random: () => number;
  /** Resolves after so long; rejects with the signal's reason when that is first. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
}

export const REAL_TIMING: Timing = {
  now: () => Date.now(),
  random: () => Math.random(),
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      signal.throwIfAborted();
      const stop = (): void => {
        clearTimeout(timer);
        reject(signal.reason);
      };
      const timer = setTimeout(() => {
        signal.removeEventListener('abort', stop);
        resolve();
      }, ms);
      signal.addEventListener('abort', stop, { once: true });
    }),
};

/** The same work, left when the signal says so. The work itself goes on: others may wait for it too. */
export function orAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work;
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal.reason);
    const settled = (): void => signal.removeEventListener('abort', stop);
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
    work.then(resolve, reject).then(settled, settled);
  });
}
