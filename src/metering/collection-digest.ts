/** Names of collections on their way to the store, which has to recognize a name and need not know it. */

import { createHash } from 'node:crypto';

/**
 * Returns 32 bits of the name's SHA-256, never 0. If two removed names of one tenant share a digest, they are given back as if they were
 * one: the count may then be one too high, never too low.
 */
export function collectionDigest(name: string): number {
  return createHash('sha256').update(name).digest().readUInt32BE(0) || 1;
}
