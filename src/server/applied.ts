/**
 * Waits until a write is applied: in this process, in the gates of this server, and, with `Prefer: wait=applied`, in
 * every replica.
 */

import type { Database } from '../store/database.ts';
import type { ChangeFeed } from '../store/feed.ts';
import { type AppliedByReplicas, ReplicaWaits } from '../store/replicas.ts';

/** The gate processes that belong to the same server as the API. */
export interface LocalGates {
  /**
   * Resolves when all of them have applied the feed up to `through`, or after a bounded wait. Never rejects.
   * @param through undefined = the feed could not be read here: everything committed before the call
   */
  applied(through: number | undefined): Promise<void>;
}

export const NO_LOCAL_GATES: LocalGates = { applied: async () => undefined };

/** How long a write with `Prefer: wait=applied` waits for the replicas. */
const REPLICAS_WAIT_MS = 5_000;

/**
 * Returns a feed whose `catchUp` resolves when this server has applied everything committed before the call. It rejects
 * with a Fault if this process cannot read the feed.
 */
export function feedOfServer(feed: ChangeFeed, gates: LocalGates): Pick<ChangeFeed, 'catchUp'> {
  return {
    async catchUp() {
      try {
        await feed.catchUp();
        await feed.settled();
      } catch (error) {
        await gates.applied(undefined);
        throw error;
      }
      await gates.applied(feed.position);
    },
  };
}

/**
 * Returns the function that waits until every live replica has applied everything committed before the call. Call it
 * once for each write.
 */
export function appliedEverywhere(
  { db }: { readonly db: Pick<Database, 'query'> },
  feed: Pick<ChangeFeed, 'catchUp' | 'position'>,
): () => Promise<AppliedByReplicas> {
  const waits = new ReplicaWaits(db);
  return async () => {
    // The write has applied it here, unless it could not read the feed, or repeated what another server had committed.
    const hasRead = await feed.catchUp().then(
      () => true,
      () => false,
    );
    const { position } = feed;
    if (!hasRead || position === undefined) return { kind: 'partial', replicas: undefined };
    return waits.wait(position, REPLICAS_WAIT_MS);
  };
}
