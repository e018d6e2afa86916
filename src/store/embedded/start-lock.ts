/**
 * Admits one process at a time to start the PostgreSQL server of a data-dir. PostgreSQL's own lock file does not
 * separate two starting servers if a killed server left one: each may remove the other's, and the server without a lock
 * file ends within a minute. The operating system releases this lock when its process ends in any way.
 */

import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { reasonOf } from '../../domain/errors.ts';
import { EmbeddedError } from './error.ts';

const FILE = 'start.lock';
const POLL_MS = 20;
/** SQLITE_BUSY: another connection holds the lock. https://sqlite.org/rescode.html#busy */
const BUSY = 5;

/**
 * Runs `work` under the lock of `dataDir`. The lock file stays, and is empty.
 * @param deadlineMs by `performance.now()`; rejects with an EmbeddedError if another process still holds the lock then
 */
export async function withStartLock<T>(dataDir: string, deadlineMs: number, work: () => Promise<T>): Promise<T> {
  const file = join(dataDir, FILE);
  const lock = await openLock(file);
  try {
    while (!isTaken(lock, file)) {
      if (performance.now() > deadlineMs) {
        throw new EmbeddedError(
          `Another process has been starting PostgreSQL in ${dataDir} for too long. End that process, then start again.`,
        );
      }
      await sleep(POLL_MS);
    }
    return await work();
  } finally {
    lock.close();
  }
}

async function openLock(file: string): Promise<DatabaseSync> {
  try {
    // Only its owner may open it: a user with read access could hold the lock.
    await (await open(file, 'a', 0o600)).close();
    return new DatabaseSync(file, { timeout: 0 });
  } catch (error) {
    throw unusable(file, error);
  }
}

function isTaken(lock: DatabaseSync, file: string): boolean {
  try {
    lock.exec('begin exclusive');
    return true;
  } catch (error) {
    if (error instanceof Error && 'errcode' in error && error.errcode === BUSY) return false;
    throw unusable(file, error);
  }
}

function unusable(file: string, error: unknown): EmbeddedError {
  return new EmbeddedError(
    `${file} cannot be locked: ${reasonOf(error)}. Make it a file that this user may write, in a file system with locks, or set database.url.`,
  );
}
