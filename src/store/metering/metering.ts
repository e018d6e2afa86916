/** The PostgreSQL implementation of metering's store. */

import type { MeteringStore, TidyOptions, TidyResult } from '../../metering/ports.ts';
import { createConnectionPermits } from '../connection-permits.ts';
import type { Database } from '../database.ts';
import { leaseRates } from './rates.ts';
import { bookLost, changeReservations, noteRequests, reserveCollection } from './reservations.ts';
import { settle, settledLately } from './settlements.ts';
import { firstRow, numberIn, type Queries } from './statement.ts';
import { holdTokens } from './tokens.ts';

/** A check may wait for one of these statements, so the timeout is the longest wait of a check. */
const TIMEOUT_MS = 1000;
/** Creations of collections at a time. A tenant leaves one of them to others. */
const CREATIONS = 2;
/** Half of these places are left to other tenants. */
const MAX_WAITING_CREATIONS = 1000;
/** One each for rates, tokens, settlements, renewals and notes, and those of creations. */
const CONNECTIONS = 5 + CREATIONS;

/** Opens a pool for metering only, so that other work does not delay a check, and a check does not delay other work. */
export function openMetering(db: Pick<Database, 'reopen'>): Database {
  return db.reopen({ poolMax: CONNECTIONS, acquireTimeoutMs: TIMEOUT_MS, queryTimeoutMs: TIMEOUT_MS });
}

export function postgresMetering(db: Queries): MeteringStore {
  const bounds = { permits: CREATIONS, maxWaiting: MAX_WAITING_CREATIONS, maxWaitMs: TIMEOUT_MS };
  const creations = createConnectionPermits(bounds);
  return {
    lease: (processId, asks) => leaseRates(db, processId, asks),
    hold: (words) => holdTokens(db, words),
    settle: (settler, settlements) => settle(db, settler, settlements),
    reserveCollection: (ask) => creations.run(() => reserveCollection(db, ask), ask.tenant),
    changeReservations: (changes, ttlMs) => changeReservations(db, changes, ttlMs),
    noteRequests: (notes) => noteRequests(db, notes),
    bookLost: (options) => bookLost(db, options),
    settledLately: (processId, withinMs) => settledLately(db, processId, withinMs),
    tidy: (options) => tidy(db, options),
  };
}

/** A window of a rate limit is kept for this number of its lengths, and for the slack, after its beginning. */
const KEPT_WINDOWS = 3;
const WINDOW_SLACK_MS = 60_000;

async function tidy(db: Queries, { windowMs, holdTtlMs, settlementKeepMs, batch }: TidyOptions): Promise<TidyResult> {
  const row = await firstRow(db, {
    name: 'metering_tidy',
    text: `select coalesce(windows, 0) as windows, coalesce(holds, 0) as holds, coalesce(creations, 0) as creations,
        coalesce(blocks, 0) as blocks, coalesce(holders, 0) as holders, metering_tidy_counters($4) as counters
      from metering_tidy($1, $2, $3, $4)`,
    values: [KEPT_WINDOWS * windowMs + WINDOW_SLACK_MS, holdTtlMs, settlementKeepMs, batch],
  });
  const removed = ['windows', 'holds', 'creations', 'blocks', 'holders', 'counters'].map((column) =>
    numberIn(row, column),
  );
  return {
    holds: numberIn(row, 'holds'),
    removed: removed.reduce((sum, count) => sum + count, 0),
    more: removed.some((count) => count >= batch),
  };
}
