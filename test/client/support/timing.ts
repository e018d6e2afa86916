/** Time for a client under test: nothing waits, and every wait is written down. */

import type { Timing } from '../../../client/timing.ts';

export interface TestTiming extends Timing {
  /** Waits between tries, in milliseconds. */
  readonly waits: number[];
  /** Advances the clock of the client. */
  advance(ms: number): void;
  /** The time is over for every try under way. */
  timeOut(): void;
  /** True: waits between tries last until they are aborted. */
  hold: boolean;
  /** Resolves when a wait between tries begins. */
  readonly waiting: Promise<void>;
}

/**
 * The timeout that tests set, shorter than the client's own of a refresh. A sleep of this length counts as a timeout,
 * and does not end by itself.
 */
export const TIMEOUT_MS = 2_999;
/** Longer than any wait of the client. */
export const LONG_TIMEOUT_MS = 30_000;

export function testTiming(random: () => number = () => 0): TestTiming {
  // Only the test advances it, so a slow machine has no effect.
  let nowMs = Date.now();
  const { promise: waiting, resolve: waits } = Promise.withResolvers<void>();
  const timeouts = new Set<() => void>();
  const timing: TestTiming = {
    waits: [],
    hold: false,
    waiting,
    now: () => nowMs,
    random,
    advance(ms) {
      nowMs += ms;
    },
    timeOut() {
      for (const end of timeouts) end();
    },
    async sleep(ms, signal) {
      signal.throwIfAborted();
      const isTimeout = ms === TIMEOUT_MS || ms === LONG_TIMEOUT_MS;
      if (!isTimeout) timing.waits.push(ms);
      if (!isTimeout) waits();
      if (!isTimeout && !timing.hold) return;
      await new Promise<void>((resolve, reject) => {
        if (isTimeout) timeouts.add(resolve);
        signal.addEventListener('abort', () => {
          timeouts.delete(resolve);
          reject(signal.reason);
        });
      });
    },
  };
  return timing;
}
