/** Batches of requests that are booked in one statement. */

/** The largest number of charges in a batch. PostgreSQL books this many distinct ones in about 25 ms, or in 300 ms if each raises 10 alerts. */
const MAX_CHARGES = 1000;

/**
 * Returns the first items, at most `most`, whose charges one statement books within its timeout.
 * @param chargesOf the number of charges of an item, far below the largest number of a batch
 */
export function chargedBatch<T>(items: Iterable<T>, most: number, chargesOf: (item: T) => number): readonly T[] {
  const batch: T[] = [];
  let charges = 0;
  for (const item of items) {
    charges += chargesOf(item);
    if (batch.length >= most || (charges > MAX_CHARGES && batch.length > 0)) break;
    batch.push(item);
  }
  return batch;
}
