/**
 * One at a time: whoever renews, logs in or logs out does so alone. Among the tabs of a browser that share a cookie, and whatever shares
 * a storage in one process, the Web Locks API sees to it; without it, each client for itself.
 */

export type Lock = <T>(run: () => Promise<T>) => Promise<T>;

/** A tab that was frozen with the lock in hand shall not keep the others out for ever; the server copes with two renewals at once. */
const MAX_WAIT_MS = 10_000;

export function localLock(): Lock {
  let last: Promise<unknown> = Promise.resolve();
  return (run) => {
    const mine = last.then(run, run);
    last = mine.catch(() => undefined);
    return mine;
  };
}

/** @param name the same for all that share one session */
export function sharedLock(name: string): Lock {
  const own = localLock();
  const locks = globalThis.navigator?.locks;
  if (locks === undefined) return own;
  return (run) =>
    own(async () => {
      let begun = false;
      const patience = AbortSignal.timeout(MAX_WAIT_MS);
      try {
        return await locks.request(name, { signal: patience }, () => {
          begun = true;
          return run();
        });
      } catch (error) {
        if (begun || !patience.aborted) throw error;
        return await run();
      }
    });
}
