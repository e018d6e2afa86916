/** Waiting for what a test is about, and no longer. */

import { setTimeout as sleep } from 'node:timers/promises';

const POLL_MS = 25;
/** As long as a slow machine may need, for example to start a process again. A poll ends with the event. */
const LIMIT_MS = 60_000;

/**
 * Asks again and again until the answer is there; a question that fails counts as not yet.
 * @param what as the error names it when the time is over, together with what the last question said
 */
export async function eventually<T>(
  what: string,
  question: () => Promise<T | undefined | false>,
  limitMs = LIMIT_MS,
): Promise<T> {
  let last: unknown = 'no answer';
  for (const end = performance.now() + limitMs; performance.now() < end; await sleep(POLL_MS)) {
    try {
      const answer = await question();
      if (answer !== undefined && answer !== false) return answer;
      last = answer;
    } catch (error) {
      last = error;
    }
  }
  throw new Error(`${what}: not within ${limitMs} ms (${last instanceof Error ? last.message : String(last)})`, {
    cause: last,
  });
}

/** Asks until the answer is the expected one. */
export async function becomes<T>(
  what: string,
  expected: T,
  question: () => Promise<T>,
  limitMs = LIMIT_MS,
): Promise<void> {
  let seen: T | undefined;
  await eventually(
    what,
    async () => {
      seen = await question();
      return seen === expected;
    },
    limitMs,
  ).catch((error: unknown) => {
    throw new Error(`${what}: expected ${String(expected)}, last seen ${String(seen)}`, { cause: error });
  });
}
