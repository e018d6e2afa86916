/**
 * Equalizes the response times of failed logins with a directory. A directory rejects an unknown username faster than a
 * wrong password, and the server does not send it an empty password. To hide the difference, each failure takes as long
 * as the slowest recent check of a password, rounded up.
 */

import { setTimeout as sleep } from 'node:timers/promises';

export interface ResponseTimer {
  /** Records the duration of a request in which the directory checked a password. */
  record(ms: number): void;
  /** Resolves when a failed login that started at `startedMs` may be answered. */
  padTo(startedMs: number): Promise<void>;
}

/** Response times are multiples of this. */
const STEP_MS = 50;
/** The number of recent durations that count. */
const MAX_RECORDED = 32;
/** Limits a recorded duration: a slower check had another cause, and no client waits longer for it. */
const MAX_MS = 2000;

export function createResponseTimer(): ResponseTimer {
  const recent: number[] = [];
  return {
    record: (ms) => {
      recent.push(Math.min(ms, MAX_MS));
      if (recent.length > MAX_RECORDED) recent.shift();
    },
    padTo: async (startedMs) => {
      const elapsed = performance.now() - startedMs;
      const padded = Math.ceil(Math.max(elapsed, ...recent, 1) / STEP_MS) * STEP_MS;
      await sleep(padded - elapsed);
    },
  };
}
