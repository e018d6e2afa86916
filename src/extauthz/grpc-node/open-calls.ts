/**
 * The calls of one server that something may still have to be done about: a message that does not become whole, an answer that is not
 * taken, a peer that does not close its side. A sweep over all of them ends those whose time is up, so that no call needs a timer.
 */

import type { CallBounds, OwnCallStats } from '../grpc/call-stats.ts';
import { UnfinishedMessages } from '../grpc/unfinished.ts';

/** A call with an end. */
export interface Expiring {
  /** By the clock of `performance.now()`, in milliseconds. */
  readonly deadlineMs: number;
  /** The stream is destroyed. */
  readonly isGone: boolean;
  /** Ends the call; called by each sweep after the deadline until the call is removed. Never throws. */
  expire(): void;
  /** Called by a sweep that finds the stream gone; removes the call. Never throws. */
  closed(): void;
}

export class OpenCalls {
  readonly unfinished: UnfinishedMessages;
  readonly nowMs: () => number;
  readonly #expiring = new Set<Expiring>();
  expired = 0;
  cancelled = 0;

  constructor({ unfinished, nowMs = () => performance.now() }: CallBounds = {}) {
    this.unfinished = new UnfinishedMessages(unfinished);
    this.nowMs = nowMs;
  }

  add(call: Expiring): void {
    this.#expiring.add(call);
  }

  remove(call: Expiring): void {
    this.#expiring.delete(call);
  }

  /** Ends every call whose deadline has passed, and forgets those whose stream is gone. */
  sweep(): void {
    const now = this.nowMs();
    for (const call of this.#expiring) {
      if (call.isGone) call.closed();
      else if (call.deadlineMs <= now) call.expire();
    }
  }

  get stats(): OwnCallStats {
    const { bytes, calls, refused } = this.unfinished;
    return {
      open: this.#expiring.size,
      unfinished: calls,
      unfinishedBytes: bytes,
      refused,
      expired: this.expired,
      cancelled: this.cancelled,
    };
  }
}
