/**
 * Login attempts in progress in this process, by account and by address. An attempt counts as a failure until it
 * succeeds, so several correct logins at once can exceed the limit of failures. A rejected attempt therefore waits
 * while other attempts of its subject are in progress, and claims again after one of them has ended. The limiter
 * rejects it when none is left.
 */

import { Refusal } from '../../domain/errors.ts';

/** The maximum number of waiting attempts of one subject. The next one gets 503. */
const MAX_WAITING = 64;
const RETRY_AFTER_SECONDS = 1;

interface Subject {
  /** Open slots. The limiter keeps the subject while there is one. */
  slots: number;
  inProgress: number;
  /** The number of attempts that have ended. */
  ended: number;
  /** Claims that are running. */
  readonly claims: Set<Promise<boolean>>;
  readonly waiting: (() => void)[];
}

/** One attempt at one account or address. */
export interface AttemptSlot {
  /**
   * Runs `claim`, and again each time that another attempt has ended. False: rejected while no other is in progress.
   */
  enter(claim: () => Promise<boolean>): Promise<boolean>;
  /**
   * Enters by a claim that several slots share. False: the claim was rejected, and everything that it counted has been
   * returned.
   */
  enterBy(claim: Promise<boolean>): Promise<boolean>;
  /** Ends the attempt with any outcome. Must be called once for each slot. */
  leave(): void;
}

export class LoginAttemptLimiter {
  readonly #subjects = new Map<string, Subject>();

  /** The number of subjects with open slots. */
  get size(): number {
    return this.#subjects.size;
  }

  open(name: string): AttemptSlot {
    const subject = this.#subjects.get(name) ?? {
      slots: 0,
      inProgress: 0,
      ended: 0,
      claims: new Set<Promise<boolean>>(),
      waiting: [],
    };
    this.#subjects.set(name, subject);
    subject.slots++;
    let entered = false;
    const enter = (): true => {
      entered = true;
      subject.inProgress++;
      return true;
    };
    return {
      enterBy: async (claim) => {
        if (await tracked(subject, claim)) return enter();
        // The claim may have counted for a moment, so attempts that were rejected in that time claim again.
        subject.ended++;
        return false;
      },
      enter: async (claim) => {
        for (;;) {
          const { ended } = subject;
          if (await tracked(subject, claim())) return enter();
          // The claim that caused this rejection may resolve later than the rejection.
          if (subject.inProgress === 0) await Promise.allSettled(subject.claims);
          if (subject.ended !== ended) continue;
          if (subject.inProgress === 0) return false;
          await nextEnd(subject);
        }
      },
      leave: () => {
        if (entered) {
          subject.inProgress--;
          subject.ended++;
        }
        // Wakes one attempt, which wakes the next one when it leaves.
        subject.waiting.shift()?.();
        subject.slots--;
        if (subject.slots === 0) this.#subjects.delete(name);
      },
    };
  }
}

async function tracked({ claims }: Subject, claim: Promise<boolean>): Promise<boolean> {
  claims.add(claim);
  try {
    return await claim;
  } finally {
    claims.delete(claim);
  }
}

function nextEnd(subject: Subject): Promise<void> {
  if (subject.waiting.length >= MAX_WAITING) {
    throw new Refusal('unavailable', 'Too many logins are under way at once. Try again shortly.', {
      retryAfter: RETRY_AFTER_SECONDS,
    });
  }
  return new Promise((resolve) => subject.waiting.push(resolve));
}
