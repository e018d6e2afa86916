/**
 * Takes away what requests leave behind: the rows of deleted roles' holders, sessions that are over with their refresh tokens, one-time
 * tokens past their time, counted failures of windows that ended, addresses without a login for 30 days, answers kept under an
 * Idempotency-Key, ids of usage events that are too old to be sent again, counts of decisions and recorded decisions beyond their bounds,
 * keys that ended and digests of secrets that were rotated long ago. No decision reads these rows, and they would only grow.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { startPeriodicRuns } from '../../concurrency/single-flight.ts';
import type { Database } from '../../store/database.ts';
import type { Queryable } from '../../store/queryable.ts';
import { databaseTime } from '../../store/time.ts';
import { transaction } from '../../store/transaction.ts';
import { pruneEndedKeys } from '../api-keys/queries.ts';
import { pruneResponses } from '../change/queries.ts';
import { joinOldMinutes, pruneDecisions } from '../decisions/count-queries.ts';
import { pruneExcessRecent, pruneOldRecent, RECENT_BOUNDS } from '../decisions/recent-queries.ts';
import { pruneRotatedDigests } from '../explain/ended-queries.ts';
import { forgetDeletedRole } from '../roles/queries.ts';
import { pruneSessions } from '../sessions/queries.ts';
import { pruneEvents } from '../usage/event-queries.ts';
import { prunePasswordSetups } from '../users/password-queries.ts';
import { pruneKnownAddresses, pruneWindows } from './failure-queries.ts';
import { WINDOW_MS } from './throttle.ts';
import { takesUpkeep, type UpkeepKind } from './upkeep-queries.ts';

/** Small, so that no batch holds the change feed up: each session that goes is a line in it. */
const SESSIONS = 200;
const ROWS = 5_000;
/** Small, because the batch holds the rows of these users, and the change feed while it appends a line for each. */
const HOLDERS = 50;
const KEYS = 200;
/** Of one chore in one run; what is left waits for the next. */
const MAX_BATCHES = 200;
const EVERY_MS = 300_000;
/** Between two batches. */
const MAX_PAUSE_MS = 200;

/** One bounded statement or a few. Resolves with the number of rows removed; 0 ends the chore. */
type Chore = (trx: Queryable) => Promise<number>;

export interface UpkeepPlan {
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
    (trx) => pruneResponses(trx, ROWS),
    (trx) => pruneEvents(trx, ROWS),
    (trx) => pruneDecisions(trx, ROWS),
    (trx) => pruneRotatedDigests(trx, ROWS),
    (trx) => joinOldMinutes(trx, ROWS),
  ],
  everyMs: EVERY_MS,
};

/** Runs more often, because gates under a flood write hundreds of rows per second. */
export const RECENT_DECISIONS_UPKEEP: UpkeepPlan = {
  kind: 'recent_decisions',
  chores: [
    async (trx) => pruneOldRecent(trx, (await databaseTime(trx)).date.getTime(), ROWS),
    (trx) => pruneExcessRecent(trx, RECENT_BOUNDS, ROWS),
  ],
  everyMs: 10_000,
};

/** Runs more often, because a role of the same name waits for it. */
export const DELETED_ROLES_UPKEEP: UpkeepPlan = {
  kind: 'deleted_roles',
  chores: [(trx) => forgetDeletedRole(trx, HOLDERS)],
  everyMs: 2_000,
};

/** Keys that were revoked, or have expired, longer ago than `keepMs`. Each that goes is a line in the change feed. */
export function endedKeysUpkeep(keepMs: number): UpkeepPlan {
  return { kind: 'ended_keys', chores: [(trx) => pruneEndedKeys(trx, keepMs, KEYS)], everyMs: EVERY_MS };
}

/**
 * One run, batch by batch in transactions of their own. Of several servers one is at it at a time.
 * @param stop no batch begins once it is aborted
 * @returns how many rows are gone
 */
export async function tidyUp(db: Database, stop?: AbortSignal, { kind, chores }: UpkeepPlan = USUAL): Promise<number> {
  let gone = 0;
  for (const chore of chores) {
    for (let batch = 0; batch < MAX_BATCHES && stop?.aborted !== true; batch++) {
      const begunMs = performance.now();
      const removed = await transaction(db, async (trx) => ((await takesUpkeep(trx, kind)) ? chore(trx) : 0));
      gone += removed;
      if (removed === 0) break;
      // The changes of callers share the locks and the processor with the batches: these take at most half of the time.
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
