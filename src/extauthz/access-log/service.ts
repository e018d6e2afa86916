/**
 * `envoy.service.accesslog.v3.AccessLogService`: each Envoy worker keeps one stream open, on which it reports in
 * batches which requests ended and which are still running. The server answers when the stream ends. Envoy does not
 * repeat the entries that a broken connection loses, so the listener must tolerate missing reports.
 */

import type { AccessLogStats } from '../../telemetry/metering-metrics.ts';
import type { GrpcMethods, IncomingCall } from '../grpc/methods.ts';
import { failure, type GrpcFailure } from '../grpc/status.ts';
import type { FinishedListener, OtherGateListener } from '../ports.ts';
import { logNameOf, readOtherGate, SHADOW_LOG } from './other-gate.ts';
import { readAccessLog } from './reader.ts';

interface AccessLog {
  readonly methods: GrpcMethods;
  readonly stats: AccessLogStats;
  /**
   * Rejects new streams, and ends every stream with status OK after 500 ms, in which Envoy sends the batch that it is
   * filling. Envoy then reports to another server. The built-in transport still reads messages that arrive after the
   * end.
   */
  end(): void;
}

/**
 * Far more than the worker threads of all Envoys that use one server. Beyond it, the server ends the stream that was
 * silent longest.
 */
const MAX_STREAMS = 1024;
/** The bound of streams that the server has ended and their peers have not. */
const MAX_ENDING_STREAMS = 1024;
/** More than twice the `buffer_flush_interval` of `envoy/*.yaml`. */
const LINGER_MS = 500;
/** Four times the `buffer_size_bytes` of `envoy/*.yaml`, which Envoy exceeds by less than one entry. */
const MAX_BATCH_BYTES = 4 * 1024 * 1024;
/** StreamAccessLogsResponse has no fields. */
const ANSWER = Buffer.alloc(0);

const BROKEN = failure('invalidArgument', 'not a StreamAccessLogsMessage');
const TOO_MANY = failure('resourceExhausted', 'too many access log streams');
const LEAVING = failure('unavailable', 'this server is stopping');

/** @param otherGate default: reports about another gate are read and dropped */
export function createAccessLog(listener: FinishedListener, otherGate?: OtherGateListener): AccessLog {
  /** Open streams in the order of their last messages, the longest silent first. */
  const open = new Set<IncomingCall>();
  /** Streams that this server has ended and their peers have not. */
  const leaving = new Set<IncomingCall>();
  const counts: EntryCounts = { entries: 0, running: 0, broken: 0, unreadable: 0, failed: 0 };
  const { take, takeShadow } = readersOf(listener, otherGate, counts);
  let ending = false;

  function begin(call: IncomingCall): ((message: Buffer) => GrpcFailure | undefined) | GrpcFailure {
    if (ending) return LEAVING;
    if (open.size >= MAX_STREAMS) {
      // Envoy loses the batch for which it opens a rejected stream. It loses nothing when a silent stream ends, and
      // opens it again.
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
    // Envoy names the log in the first message of a stream only.
    let isShadow: boolean | undefined;
    return (message) => {
      if (open.delete(call)) open.add(call);
      isShadow ??= logNameOf(message) === SHADOW_LOG;
      return isShadow ? takeShadow(message) : take(message);
    };
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

type EntryCounts = Record<'entries' | 'running' | 'broken' | 'unreadable' | 'failed', number>;

/** Returns the functions that read one message of a stream: of this server's log, and of the log beside another gate. */
function readersOf(listener: FinishedListener, otherGate: OtherGateListener | undefined, counts: EntryCounts) {
  function takeShadow(message: Buffer): GrpcFailure | undefined {
    const { entries, denied, unreadable, whole } = readOtherGate(message);
    if (entries > 0) otherGate?.reported();
    for (const requestId of denied) otherGate?.denied(requestId);
    return outcomeOf(unreadable, whole);
  }

  function take(message: Buffer): GrpcFailure | undefined {
    const { finished, running, unreadable, whole } = readAccessLog(message);
    for (const request of finished) if (booked(() => listener.finished(request))) counts.entries++;
    for (const reservation of running) if (booked(() => listener.running(reservation))) counts.running++;
    return outcomeOf(unreadable, whole);
  }

  function outcomeOf(unreadable: number, whole: boolean): GrpcFailure | undefined {
    counts.unreadable += unreadable;
    if (whole) return undefined;
    counts.broken++;
    return BROKEN;
  }

  /** Reports whether the listener accepted one entry. An entry that it cannot accept does not affect the others. */
  function booked(report: () => void): boolean {
    try {
      report();
      return true;
    } catch {
      counts.failed++;
      return false;
    }
  }

  return { take, takeShadow };
}
