/** The threads that hash passwords: Node's pool, with a lower priority than the main thread. */

import { readdirSync, readFileSync } from 'node:fs';
import { getPriority, setPriority } from 'node:os';

/**
 * Added to the nice value of Linux. With this difference, a thread gets a third of the time of the main thread if both
 * need a whole processor.
 */
const NICER = 5;
/** The name of the threads of libuv's pool. */
const POOL_THREAD = 'libuv-worker';
const TASKS = '/proc/self/task';

/**
 * Lowers the priority of hashing, so that checks and answers do not wait for a hash on the same processor. Call it
 * after the pool has worked once, so that its threads exist. Only Linux has priorities for threads. On other systems,
 * and if the system forbids it, nothing changes.
 */
export function letHashingGiveWay(): void {
  try {
    const nicer = Math.min(getPriority() + NICER, 19);
    for (const thread of poolThreads()) setPriority(thread, nicer);
  } catch {
    return;
  }
}

/** Returns the ids of the pool's threads. Throws if the system does not list them. */
export function poolThreads(): readonly number[] {
  return readdirSync(TASKS)
    .filter((id) => readFileSync(`${TASKS}/${id}/comm`, 'utf8').trim() === POOL_THREAD)
    .map(Number);
}
