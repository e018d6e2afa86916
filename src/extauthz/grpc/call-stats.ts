/** Counts and bounds of calls, the same for every transport. */

import { failure } from './status.ts';
import type { UnfinishedBounds } from './unfinished.ts';

/** Calls since the process began, and what is open now. */
export interface CallStats {
  /** Calls of one message that are not closed, now. */
  readonly open: number;
  /** Calls that have a message of which a part has come, now. */
  readonly unfinished: number;
  /** Memory of these messages, in bytes, now. */
  readonly unfinishedBytes: number;
  /** Calls that were refused because unfinished messages took too much memory. */
  readonly refused: number;
  /** Calls whose time was up before their answer was delivered. */
  readonly expired: number;
  /** Calls that their peer reset, or whose connection broke, before their answer was delivered. */
  readonly cancelled: number;
  /** Streams that were refused because their peer resets too many, or has too many open; 0 on Node's HTTP/2, which does not tell. */
  readonly refusedStreams: number;
  /** Connections that this server ended because of their peer's behavior; 0 on Node's HTTP/2. */
  readonly endedConnections: number;
  /** Connections that ended with an exception in this server's own code; 0 on Node's HTTP/2. */
  readonly faults: number;
}

/** Calls, without what a transport counts of its connections. */
export type OwnCallStats = Omit<CallStats, 'refusedStreams' | 'endedConnections' | 'faults'>;

/**
 * The most that a call of one message may take, from its headers to the delivery of its answer: far more than a check waits (2 s), and
 * than 17 MiB take to arrive. The peer's own `grpc-timeout` counts if it is less.
 */
export const MAX_CALL_MS = 10_000;
/** A call ends at most this long after its deadline. */
const SWEEP_EVERY_MS = 250;
/** How long a peer has to close its side after its call was answered: messages on their way are still taken. */
export const LINGER_MS = 10_000;
/** The same after a failure, when nothing more is taken. */
export const FAILED_LINGER_MS = 1_000;

/** Calls `tick` periodically, until the returned function is called. */
export type Ticking = (tick: () => void) => () => void;

export const everySweep: Ticking = (tick) => {
  const timer = setInterval(tick, SWEEP_EVERY_MS).unref();
  return () => clearInterval(timer);
};

export interface CallBounds {
  readonly unfinished?: UnfinishedBounds;
  /** The clock of `performance.now()`, in milliseconds. */
  readonly nowMs?: () => number;
}

export const NOT_WHOLE = failure('internal', 'the call ended before its message was complete');
export const TWO_MESSAGES = failure('internal', 'the call has more than one message');
export const EXPIRED = failure('deadlineExceeded', 'the deadline of this call has passed');
export const TOO_SLOW = failure('deadlineExceeded', 'a message took too long to arrive');
export const TOO_MUCH_UNFINISHED = failure('resourceExhausted', 'too many bytes of unfinished messages');
export const INTERNAL = failure('internal', 'the call could not be answered');
export const UNKNOWN_METHOD = failure('unimplemented', 'this server does not implement this method');
