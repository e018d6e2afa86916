/**
 * Draws secure random bytes in large amounts, so that one call of the operating system's generator serves hundreds of
 * requests.
 */

import { randomFillSync } from 'node:crypto';

export interface RandomPool {
  /** Returns bytes that no other call returns. */
  take(count: number): Uint8Array;
}

const POOL_BYTES = 8192;

/** @param fill fills a buffer with secure random bytes */
export function createRandomPool(fill: (bytes: Uint8Array) => void = randomFillSync): RandomPool {
  let pool = new Uint8Array(POOL_BYTES);
  let used = POOL_BYTES;
  return {
    take(count: number): Uint8Array {
      if (used + count > POOL_BYTES) {
        pool = new Uint8Array(POOL_BYTES);
        fill(pool);
        used = 0;
      }
      used += count;
      return pool.subarray(used - count, used);
    },
  };
}
