/** The state that the calls of one server share: the clock, the memory of unfinished messages, and the counts. */

import type { CallBounds, OwnCallStats } from './call-stats.ts';
import { UnfinishedMessages } from './unfinished.ts';

export class ServedCalls {
  readonly unfinished: UnfinishedMessages;
  readonly nowMs: () => number;
  open = 0;
  expired = 0;
  cancelled = 0;

  constructor({ unfinished, nowMs = () => performance.now() }: CallBounds = {}) {
    this.unfinished = new UnfinishedMessages(unfinished);
    this.nowMs = nowMs;
  }

  get stats(): OwnCallStats {
    const { bytes, calls, refused } = this.unfinished;
    return {
      open: this.open,
      unfinished: calls,
      unfinishedBytes: bytes,
      refused,
      expired: this.expired,
      cancelled: this.cancelled,
    };
  }
}
