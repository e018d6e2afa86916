/**
 * How long a login by a directory takes when it fails. A directory answers at once about a name that it does not know, and later about
 * one whose password it looked at; an empty password is not even brought to it. So that the time tells nobody which of them it was, each
 * failure is held back until it has taken as long as those in which a password was looked at lately, rounded up.
 */

import { setTimeout as sleep } from 'node:timers/promises';

export interface Pace {
  /** A directory has looked at a password, and this is how long the whole question took. */
  note(ms: number): void;
  /** Resolves when a failure that began then may be told. */
  heldBack(startedMs: number): Promise<void>;
}

/** Differences smaller than that are hidden by rounding. */
const STEP_MS = 50;
/** How many questions are remembered. */
const REMEMBERED = 32;
/** One that took longer was held up by something else, and nobody is kept waiting for that. */
const MAX_MS = 2000;

/** @param now milliseconds of a clock that never goes back */
export function makePace(now: () => number = () => performance.now()): Pace {
  const lately: number[] = [];
  return {
    note: (ms) => {
      lately.push(Math.min(ms, MAX_MS));
      if (lately.length > REMEMBERED) lately.shift();
    },
    heldBack: async (startedMs) => {
      const elapsed = now() - startedMs;
      const whole = Math.ceil(Math.max(elapsed, ...lately, 1) / STEP_MS) * STEP_MS;
      await sleep(whole - elapsed);
    },
  };
}
