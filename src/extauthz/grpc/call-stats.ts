/** Counts and bounds of calls, for both transports. */

import type { CallStats } from '../../telemetry/grpc-metrics.ts';
import { failure } from './status.ts';
import type { UnfinishedBounds } from './unfinished.ts';

/** The counts of calls, without those of connections. */
export type OwnCallStats = Omit<CallStats, 'refusedStreams' | 'endedConnections' | 'faults'>;

/**
 * The maximum duration of a call of one message, from its headers to the delivery of its answer. It is much longer than
 * a check waits (2 s), and than 17 MiB take to arrive. A shorter `grpc-timeout` of the peer takes precedence.
 */
export const MAX_CALL_MS = 10_000;
/** A call ends at most 250 ms after its deadline. */
const SWEEP_EVERY_MS = 250;
/**
 * How long a peer may take to end its side after its call was answered. The server still reads the messages on their
 * way.
 */
export const LINGER_MS = 10_000;
/** The same after a failure, when the server discards what arrives. */
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
export const DEADLINE_PASSED = failure('deadlineExceeded', 'the deadline of this call has passed');
export const TOO_SLOW = failure('deadlineExceeded', 'a message took too long to arrive');
export const TOO_MUCH_UNFINISHED = failure('resourceExhausted', 'too many bytes of unfinished messages');
export const INTERNAL = failure('internal', 'the call could not be answered');
export const UNKNOWN_METHOD = failure('unimplemented', 'this server does not implement this method');
