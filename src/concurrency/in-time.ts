/** Settles as `work` does, or after `maxMs` milliseconds as the call of `late` does, which may throw. */
export async function inTime<T>(work: Promise<T>, maxMs: number, late: () => T): Promise<T> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, maxMs);
  try {
    return await Promise.race([work, promise.then(late)]);
  } finally {
    clearTimeout(timer);
  }
}
