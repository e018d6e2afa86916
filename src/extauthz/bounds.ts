/** The bounds of unfinished messages, which depend on the largest body that a decision reads. */

import { UNFINISHED_BOUNDS, type UnfinishedBounds } from './grpc/unfinished.ts';

const MIB = 1024 * 1024;
export const DEFAULT_MAX_BODY_BYTES = MIB;
/** The upper limits of the bounds. Each has room for at least 7 of the largest messages (17 MiB). */
const MAX_CONNECTION_BYTES = 128 * MIB;
const MAX_PROCESS_BYTES = 512 * MIB;

/**
 * Returns the bounds for bodies of at most `maxBodyBytes` (at most 16 MiB). Unfinished messages may take 32 bodies per
 * connection and 128 per process, up to 128 MiB and 512 MiB.
 */
export function boundsFor(maxBodyBytes: number): UnfinishedBounds {
  const scale = Math.max(1, maxBodyBytes / DEFAULT_MAX_BODY_BYTES);
  return {
    connectionBytes: Math.min(MAX_CONNECTION_BYTES, Math.floor(scale * UNFINISHED_BOUNDS.connectionBytes)),
    processBytes: Math.min(MAX_PROCESS_BYTES, Math.floor(scale * UNFINISHED_BOUNDS.processBytes)),
  };
}
