/**
 * Locks for refreshes, logins and logouts: one of them runs at a time. The Web Locks API gives one lock to all tabs of
 * a browser that share a cookie, and to all clients of a process that share a storage. Without it, each client has a
 * lock of its own.
 */

export type Lock = <T>(run: () => Promise<T>) => Promise<T>;

/**
 * A tab that was frozen while it held the lock must not block the others for ever. The server allows two refreshes at
 * once.
 */
const MAX_WAIT_MS = 10_000;

export function localLock(): Lock {
  let last: Promise<unknown> = Promise.resolve();
  return (run) => {
    const mine = last.then(run, run);
    last = mine.catch(() => undefined);
    return mine;
  };
}

/** @param name the same for all clients that share a session */
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
