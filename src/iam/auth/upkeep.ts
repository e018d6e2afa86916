/**
 * Removes rows that no decision reads and that would otherwise only grow: holders of deleted roles, names of ended sessions of
 * issuers, ended sessions with their refresh tokens, expired one-time tokens, failure counts of ended windows, addresses without a login for 30
 * days, used states of logins by an issuer, responses stored for an Idempotency-Key, ids of old usage events, counts of decisions and recorded decisions
 * beyond their bounds, uses of permissions by keys, ended keys, digests of rotated secrets, and deliveries that are old
 * or whose webhook was deleted.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { startPeriodicRuns } from '../../concurrency/single-flight.ts';
import type { Database } from '../../store/database.ts';
import type { Queryable } from '../../store/queryable.ts';
import { databaseTime } from '../../store/time.ts';
import { transaction } from '../../store/transaction.ts';
import { pruneUses } from '../api-keys/permission-use-queries.ts';
import { pruneEndedKeys } from '../api-keys/queries.ts';
import { pruneResponses } from '../change/queries.ts';
import { joinOldMinutes, pruneDecisions } from '../decisions/count-queries.ts';
import { pruneExcessRecent, pruneOldRecent, pruneOtherDenials, RECENT_BOUNDS } from '../decisions/recent-queries.ts';
import { pruneRotatedDigests } from '../explain/ended-queries.ts';
import { endRowsOfIssuer } from '../issuers/reference-queries.ts';
import { forgetDeletedRole } from '../roles/queries.ts';
import { pruneSessions } from '../sessions/queries.ts';
import { pruneUsed } from '../sso/queries.ts';
import { pruneEvents } from '../usage/event-queries.ts';
import { prunePasswordSetups } from '../users/password-queries.ts';
import { expireDeliveries, pruneDeliveries, pruneEndedDeliveries } from '../webhooks/delivery-queries.ts';
import { pruneKnownAddresses, pruneWindows } from './failure-queries.ts';
import { WINDOW_MS } from './throttle.ts';
import { takesUpkeep, type UpkeepKind } from './upkeep-queries.ts';

/** Small, because each ended or removed session is a row of the change feed, which a batch must not delay. */
const SESSIONS = 200;
const ROWS = 5_000;
/** Small, because the body of each may have 64 Ki characters. */
const DELIVERIES = 1_000;
/** Small, because the batch holds the rows of these users, and the change feed while it appends a row for each. */
const HOLDERS = 50;
const KEYS = 200;
/** The maximum number of batches of one chore in one run. The next run continues. */
const MAX_BATCHES = 200;
const EVERY_MS = 300_000;
/** The pause between two batches. */
const MAX_PAUSE_MS = 200;

/** A few bounded statements. Resolves with the number of removed rows. 0 ends the chore. */
type Chore = (trx: Queryable) => Promise<number>;

interface UpkeepPlan {
  readonly kind: UpkeepKind;
  readonly chores: readonly Chore[];
  readonly everyMs: number;
}

const USUAL: UpkeepPlan = {
  kind: 'usual',
  chores: [
    (trx) => pruneSessions(trx, { sessions: SESSIONS, tokens: ROWS }),
    (trx) => prunePasswordSetups(trx, ROWS),
    (trx) => pruneWindows(trx, WINDOW_MS, ROWS),
    (trx) => pruneKnownAddresses(trx, ROWS),
    (trx) => pruneUsed(trx, ROWS),
    (trx) => pruneResponses(trx, ROWS),
    (trx) => pruneEvents(trx, ROWS),
    (trx) => pruneDecisions(trx, false, ROWS),
    (trx) => pruneDecisions(trx, true, ROWS),
    (trx) => pruneUses(trx, ROWS),
    (trx) => pruneRotatedDigests(trx, ROWS),
    (trx) => joinOldMinutes(trx, false, ROWS),
    (trx) => joinOldMinutes(trx, true, ROWS),
    (trx) => expireDeliveries(trx, ROWS),
    (trx) => pruneDeliveries(trx, DELIVERIES),
    (trx) => pruneEndedDeliveries(trx, DELIVERIES),
  ],
  everyMs: EVERY_MS,
};

/** Runs more often, because gates under a flood write hundreds of rows per second. */
export const RECENT_DECISIONS_UPKEEP: UpkeepPlan = {
  kind: 'recent_decisions',
  chores: [
    async (trx) => pruneOldRecent(trx, (await databaseTime(trx)).date.getTime(), ROWS),
    (trx) => pruneExcessRecent(trx, 'sampled', RECENT_BOUNDS.sampled, ROWS),
    (trx) => pruneExcessRecent(trx, 'first_allows', RECENT_BOUNDS.first_allows, ROWS),
    (trx) => pruneExcessRecent(trx, 'reported', RECENT_BOUNDS.reported, ROWS),
    (trx) => pruneExcessRecent(trx, 'shadow', RECENT_BOUNDS.shadow, ROWS),
    (trx) => pruneOtherDenials(trx, ROWS),
  ],
  everyMs: 10_000,
};

/**
 * Runs more often: a new role of the same name must wait for it, and a gate of an older version accepts ended sessions of
 * an issuer until then.
 */
export const DELETED_ROLES_UPKEEP: UpkeepPlan = {
  kind: 'deleted_roles',
  chores: [(trx) => forgetDeletedRole(trx, HOLDERS), (trx) => endRowsOfIssuer(trx, SESSIONS)],
  everyMs: 2_000,
};

/**
 * Returns the chore for keys that were revoked or expired more than `keepMs` ago. Each removed key is a row of the
 * change feed.
 */
export function endedKeysUpkeep(keepMs: number): UpkeepPlan {
  return { kind: 'ended_keys', chores: [(trx) => pruneEndedKeys(trx, keepMs, KEYS)], everyMs: EVERY_MS };
}

/**
 * Runs the chores once, each batch in its own transaction. One server at a time runs them.
 * @param stop aborts before the next batch
 * @returns the number of removed rows
 */
export async function tidyUp(db: Database, stop?: AbortSignal, { kind, chores }: UpkeepPlan = USUAL): Promise<number> {
  let gone = 0;
  for (const chore of chores) {
    for (let batch = 0; batch < MAX_BATCHES && stop?.aborted !== true; batch++) {
      const begunMs = performance.now();
      const removed = await transaction(db, async (trx) => ((await takesUpkeep(trx, kind)) ? chore(trx) : 0));
      gone += removed;
      if (removed === 0) break;
      // Callers' changes need the same locks and the processor, so batches use at most half of the time.
      await sleep(Math.min(performance.now() - begunMs, MAX_PAUSE_MS));
    }
  }
  return gone;
}

/**
 * Runs the chores of a plan at its interval.
 * @param onFault called with the error of a run that failed. The next run retries.
 * @returns a function that stops the chores, and resolves after the current batch
 */
export function startUpkeep(db: Database, onFault: (error: unknown) => void, plan = USUAL): () => Promise<void> {
  return startPeriodicRuns((stop) => tidyUp(db, stop, plan).then(() => undefined, onFault), plan.everyMs);
}
