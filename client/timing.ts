/** The clock, timers and random numbers. Tests replace them. */

export interface Timing {
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** From 0 to less than 1. It spreads attempts, and need not be secret. */
  readonly random: () => number;
  /** Resolves after this time. Rejects with the signal's reason if the signal aborts before. */
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

/** Settles like `work`, or rejects when the signal aborts. The work continues, because other calls may wait for it. */
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
