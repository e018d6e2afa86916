/**
 * `envoy.service.accesslog.v3.AccessLogService`: each Envoy worker keeps one stream open and tells on it, in batches, which requests are
 * over. Nothing is answered before the stream ends, and what is lost on a connection that breaks is not sent again: whoever listens
 * must do without some.
 */

import type { GrpcMethods, IncomingCall } from '../grpc/calls.ts';
import { failure, type GrpcFailure } from '../grpc/status.ts';
import type { FinishedListener } from '../ports.ts';
import { readAccessLog } from './reader.ts';

export interface AccessLogStats {
  /** Open now. */
  readonly streams: number;
  /** Requests that the listener was told of. */
  readonly entries: number;
  /** Messages that could not be read; each ended its stream. */
  readonly broken: number;
  /** Requests that the listener threw at. */
  readonly failed: number;
}

export interface AccessLog {
  readonly methods: GrpcMethods;
  readonly stats: AccessLogStats;
  /**
   * Ends every stream well, after a moment in which Envoy sends the batch that it is filling, and refuses new ones; Envoy goes on with
   * another server. What is under way even then is still read.
   */
  end(): void;
}

/** Far more than the worker threads of all Envoys that ask one server. */
const MAX_STREAMS = 1024;
/** More than twice `buffer_flush_interval` in `envoy/*.yaml`. */
const LINGER_MS = 500;
/** StreamAccessLogsResponse has no fields. */
const ANSWER = Buffer.alloc(0);

const BROKEN = failure('invalidArgument', 'not a StreamAccessLogsMessage');
const TOO_MANY = failure('resourceExhausted', 'too many access log streams');
const LEAVING = failure('unavailable', 'this server is stopping');

export function createAccessLog(listener: FinishedListener): AccessLog {
  const open = new Set<IncomingCall>();
  const counts = { entries: 0, broken: 0, failed: 0 };
  let ending = false;

  function begin(call: IncomingCall): ((message: Buffer) => GrpcFailure | undefined) | GrpcFailure {
    if (ending) return LEAVING;
    if (open.size >= MAX_STREAMS) return TOO_MANY;
    open.add(call);
    call.onEnd(() => open.delete(call));
    return take;
  }

  function take(message: Buffer): GrpcFailure | undefined {
    const finished = readAccessLog(message);
    if (finished === undefined) {
      counts.broken++;
      return BROKEN;
    }
    for (const request of finished) {
      try {
        listener.finished(request);
        counts.entries++;
      } catch {
        // One request that cannot be booked is no reason to lose those beside it.
        counts.failed++;
      }
    }
    return undefined;
  }

  return {
    methods: {
      '/envoy.service.accesslog.v3.AccessLogService/StreamAccessLogs': { kind: 'client-stream', open: begin, answer: ANSWER },
    },
    get stats() {
      return { streams: open.size, ...counts };
    },
    end() {
      if (ending) return;
      ending = true;
      if (open.size === 0) return;
      setTimeout(() => {
        for (const call of open) call.end();
      }, LINGER_MS);
    },
  };
}
