/** This process as a replica of the installation's data: its row among the replicas. */

import type { ChangeFeed } from '../store/feed.ts';
import { Replica } from '../store/replicas.ts';
import type { ProcessIdentity, Wiring } from './wiring.ts';

/** Without notifications a writer only sees what the heartbeats report. */
const POLLED_HEARTBEAT_MS = 1000;

/** Registers the process; the row goes with the stack. Call it after the feed's start and before the listener's. */
export async function startReplica(
  { config, store, telemetry }: Wiring,
  feed: ChangeFeed,
  identity: ProcessIdentity,
  stack: AsyncDisposableStack,
): Promise<Replica> {
  const replica = new Replica({
    db: store.db,
    feed,
    ...identity,
    maxStalenessMs: config.cache.maxStalenessMs,
    ...(config.database.notifications ? {} : { heartbeatMs: POLLED_HEARTBEAT_MS }),
    onError: (err) =>
      telemetry.log.warn({ part: 'replicas', err }, 'this process could not report its position in the change feed'),
  });
  stack.defer(() => replica.stop());
  await replica.start();
  return replica;
}
