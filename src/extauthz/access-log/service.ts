/**
 * `envoy.service.accesslog.v3.AccessLogService`: each Envoy worker keeps one stream open and reports on it, in batches, which requests ended
 * and which are still running. Nothing is answered before the stream ends. Envoy does not repeat entries that are lost on a connection
 * that breaks, so the listener must do without some.
 */

import type { GrpcMethods, IncomingCall } from '../grpc/methods.ts';
import { failure, type GrpcFailure } from '../grpc/status.ts';
import type { FinishedListener } from '../ports.ts';
import { readAccessLog } from './reader.ts';

export interface AccessLogStats {
  /** Open now. */
  readonly streams: number;
  /** Ends of requests that the listener took. */
  readonly entries: number;
  /** Reports of requests that were still running. */
  readonly running: number;
  /** Messages that could not be read to their end; each ended its stream. */
  readonly broken: number;
  /** Entries that could not be read and were skipped. */
  readonly unreadable: number;
  /** Entries for which the listener threw. */
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

/** Far more than the worker threads of all Envoys that use one server. Beyond it, the stream that was silent longest makes way. */
const MAX_STREAMS = 1024;
/** Streams that made way and did not end yet count here. */
const MAX_ENDING_STREAMS = 1024;
/** More than twice `buffer_flush_interval` in `envoy/*.yaml`. */
const LINGER_MS = 500;
/** Four times `buffer_size_bytes` in `envoy/*.yaml`, which Envoy passes by less than one entry. */
const MAX_BATCH_BYTES = 4 * 1024 * 1024;
/** StreamAccessLogsResponse has no fields. */
const ANSWER = Buffer.alloc(0);

const BROKEN = failure('invalidArgument', 'not a StreamAccessLogsMessage');
const TOO_MANY = failure('resourceExhausted', 'too many access log streams');
const LEAVING = failure('unavailable', 'this server is stopping');

export function createAccessLog(listener: FinishedListener): AccessLog {
  /** In the order in which they sent their last message; the longest silent first. */
  const open = new Set<IncomingCall>();
  /** Ended by this server, not yet by their peers. */
  const leaving = new Set<IncomingCall>();
  const counts = { entries: 0, running: 0, broken: 0, unreadable: 0, failed: 0 };
  let ending = false;

  function begin(call: IncomingCall): ((message: Buffer) => GrpcFailure | undefined) | GrpcFailure {
    if (ending) return LEAVING;
    if (open.size >= MAX_STREAMS) {
      // A refused stream costs Envoy the batch that it opened the stream for. A silent one costs nothing: Envoy opens it again.
      const [silent] = open;
      if (silent === undefined || leaving.size >= MAX_ENDING_STREAMS) return TOO_MANY;
      open.delete(silent);
      leaving.add(silent);
      silent.end();
    }
    open.add(call);
    call.onEnd(() => {
      open.delete(call);
      leaving.delete(call);
    });
    return (message) => {
      if (open.delete(call)) open.add(call);
      return take(message);
    };
  }

  function take(message: Buffer): GrpcFailure | undefined {
    const { finished, running, unreadable, whole } = readAccessLog(message);
    for (const request of finished) if (booked(() => listener.finished(request))) counts.entries++;
    for (const reservation of running) if (booked(() => listener.running(reservation))) counts.running++;
    counts.unreadable += unreadable;
    if (whole) return undefined;
    counts.broken++;
    return BROKEN;
  }

  /** One entry that the listener cannot take is no reason to lose those beside it. */
  function booked(report: () => void): boolean {
    try {
      report();
      return true;
    } catch {
      counts.failed++;
      return false;
    }
  }

  return {
    methods: {
      '/envoy.service.accesslog.v3.AccessLogService/StreamAccessLogs': {
        kind: 'client-stream',
        maxMessageBytes: MAX_BATCH_BYTES,
        open: begin,
        answer: ANSWER,
      },
    },
    get stats() {
      return { streams: open.size + leaving.size, ...counts };
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
