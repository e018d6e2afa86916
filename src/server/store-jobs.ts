/**
 * Jobs of one process that write to the store until the stack is disposed: last uses, decisions, and the process's row
 * of replicas.
 */

import { DecisionCounts } from '../store/decision-counts.ts';
import type { ChangeFeed } from '../store/feed.ts';
import { KeyUses } from '../store/last-use.ts';
import { OtherGateDenials } from '../store/other-gate.ts';
import { RecentDecisionWriter } from '../store/recent-decisions.ts';
import { Replica } from '../store/replicas.ts';
import type { ProcessIdentity, WiringContext } from './wiring-context.ts';

/** Writes each key's last use. */
export function keyUses({ config, store, telemetry }: WiringContext, stack: AsyncDisposableStack): KeyUses {
  const uses = new KeyUses({
    db: store.db,
    maxKeys: config.cache.credentials,
    onError: (error) => {
      telemetry.log.warn(
        { part: 'last use', err: error, waiting: uses.waiting },
        'the last use of keys could not be written',
      );
    },
  });
  stack.defer(() => uses.stop());
  return uses;
}

/** Writes the gate's decisions, enforced ones and those in shadow mode: their counts, and the recent ones. */
export function startDecisionWriters({ store, telemetry }: WiringContext, stack: AsyncDisposableStack): void {
  const { db } = store;
  const warn = (part: string, message: string) => (error: unknown) => telemetry.log.warn({ part, err: error }, message);
  const counts = new DecisionCounts({
    db,
    tally: telemetry.tally,
    onError: warn('decision counts', 'decisions could not be counted in the database'),
  });
  stack.defer(() => counts.stop());
  const shadowCounts = new DecisionCounts({
    db,
    tally: telemetry.shadowTally,
    table: 'shadow_decision_counts',
    onError: warn('decision counts', 'decisions in shadow mode could not be counted in the database'),
  });
  stack.defer(() => shadowCounts.stop());
  for (const source of [telemetry.recent, telemetry.trial]) {
    const recent = new RecentDecisionWriter({
      db,
      source,
      onError: warn('recent decisions', 'recent decisions could not be written to the database'),
    });
    stack.defer(() => recent.stop());
  }
}

/** Writes the denials of another gate that Envoy reports. */
export function otherGateDenials(
  { store, telemetry }: WiringContext,
  now: () => number,
  stack: AsyncDisposableStack,
): OtherGateDenials {
  const denials = new OtherGateDenials({
    db: store.db,
    now,
    onError: (error) =>
      telemetry.log.warn({ part: 'trial', err: error }, 'denials of the other gate could not be written'),
  });
  stack.defer(() => denials.stop());
  return denials;
}

/** Without notifications, writers know only the positions that heartbeats report. */
const POLLED_HEARTBEAT_MS = 1000;

/**
 * Registers the process as a replica. Must be called after the start of the feed and before the start of the listener.
 */
export async function startReplica(
  { config, store, telemetry }: WiringContext,
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
