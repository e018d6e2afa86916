const MAX_AT_ONCE = 6;

/**
 * Does the work for each item, at most 6 at a time, and returns the results in the order of the items. Rejects with the
 * first failure.
 */
export async function inTurns<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<readonly R[]> {
  const results: R[] = [];
  const left = [...items.entries()];
  const worker = async (): Promise<void> => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) results[next[0]] = await work(next[1]);
  };
  await Promise.all(Array.from({ length: MAX_AT_ONCE }, worker));
  return results;
}
