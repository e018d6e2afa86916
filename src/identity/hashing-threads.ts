/** The threads that passwords are hashed on: Node's pool, which has the processor's time only when nobody else wants it more. */

import { readdirSync, readFileSync } from 'node:fs';
import { getPriority, setPriority } from 'node:os';

/** Of Linux' nice values: a thread so much nicer gets a third of the time of one that is not, where both want a whole processor. */
const NICER = 5;
/** As libuv calls the threads of its pool. */
const POOL_THREAD = 'libuv-worker';
const TASKS = '/proc/self/task';

/**
 * Lets hashing give way to the thread that decides and answers, where they share a processor: a check, or an answer that is due, then
 * does not wait for a hash to have its turn. Call it when the pool has worked once, so that its threads are there. Only Linux gives threads
 * priorities of their own; elsewhere, and where it is forbidden, nothing changes.
 */
export function letHashingGiveWay(): void {
  try {
    const nicer = Math.min(getPriority() + NICER, 19);
    for (const thread of poolThreads()) setPriority(thread, nicer);
  } catch {
    return;
  }
}

/** By their ids in the system. Throws where the system does not tell. */
export function poolThreads(): readonly number[] {
  return readdirSync(TASKS)
    .filter((id) => readFileSync(`${TASKS}/${id}/comm`, 'utf8').trim() === POOL_THREAD)
    .map(Number);
}
