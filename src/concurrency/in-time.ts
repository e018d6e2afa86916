/** Waits with a bound. */

/** Settles as `work` does, or rejects with the error that `late` returns after `maxMs` milliseconds. */
export async function inTime<T>(work: Promise<T>, maxMs: number, late: () => Error): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(late()), maxMs);
  try {
    return await Promise.race([work, promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** Resolves when `work` does, and at the latest after `maxMs` milliseconds. Rejects if `work` rejects before. */
export async function atMost(work: Promise<void>, maxMs: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, maxMs);
  try {
    await Promise.race([work, promise]);
  } finally {
    clearTimeout(timer);
  }
}
