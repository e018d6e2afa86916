/** Metrics of the gRPC listener. */

import type { Log } from './log.ts';
import { counter, gauge } from './metric-definition.ts';
import type { Metrics } from './metrics.ts';

export const GRPC_METRICS = {
  postern_grpc_calls: gauge(['kind'], 'Open calls with one message.', {
    explanation:
      '`open`: all of them. `unfinished_message`: those whose message is incomplete. See the [bounds](security.md#cost-bounds).',
  }),
  postern_grpc_unfinished_bytes: gauge([], 'Memory of partly received messages.'),
  postern_grpc_calls_ended_total: counter(['reason'], 'Calls that ended before their answer was delivered.', {
    explanation:
      '`refused`: unfinished messages held too much memory. `expired`: the deadline passed. `cancelled`: the peer reset the call or lost its connection. `shed`: the peer resets too many calls, or has too many open.',
  }),
  postern_grpc_connections_ended_total: counter(
    ['reason'],
    'Connections to the gRPC listener that the server closed.',
    {
      explanation:
        '`peer`: the peer exceeded a [bound](security.md#cost-bounds), violated the protocol or was silent. `fault`: an exception in the server; report it. 0 with `grpc.transport: grpc-js`.',
    },
  ),
  postern_grpc_tls_reloads_total: counter(['outcome'], 'TLS files that changed on disk, by outcome.', {
    explanation: '`taken` (loaded) or `refused`. Alert on `refused`. See [TLS files](operations.md#tls-files).',
  }),
} as const;

/** Calls since the start of the process, and calls that are open now. */
export interface CallStats {
  /** Open calls of one message, now. */
  readonly open: number;
  /** Calls with an incomplete message, now. The transport grpc-js reports 0, here and below. */
  readonly unfinished: number;
  /** The memory of these messages, in bytes, now. */
  readonly unfinishedBytes: number;
  /** Calls that were rejected because unfinished messages took too much memory. */
  readonly refused: number;
  /**
   * Calls whose deadline passed before their answer was delivered. Both transports count these, and cancelled calls.
   */
  readonly expired: number;
  /** Calls that their peer reset, or whose connection broke, before their answer was delivered. */
  readonly cancelled: number;
  /** Streams that were refused because their peer resets too many, or has too many open. */
  readonly refusedStreams: number;
  /** Connections that this server ended because of their peer's behavior. */
  readonly endedConnections: number;
  /** Connections that ended with an exception in this server's own code. */
  readonly faults: number;
}

/** The outcome of a change of TLS files on disk. */
export type TlsReload =
  | {
      readonly kind: 'taken';
      /** The end of the new certificate, in RFC 3339. */
      readonly notAfter: string;
    }
  | {
      readonly kind: 'refused';
      /** One sentence that names the file or states the mismatch. It contains no content of a file. */
      readonly problem: string;
    };

export function watchCalls(metrics: Metrics, stats: () => CallStats): void {
  metrics.show('postern_grpc_calls', () => {
    const { open, unfinished } = stats();
    return Object.entries({ open, unfinished_message: unfinished });
  });
  metrics.show('postern_grpc_unfinished_bytes', () => stats().unfinishedBytes);
  metrics.show('postern_grpc_calls_ended_total', () => {
    const { refused, expired, cancelled, refusedStreams } = stats();
    return Object.entries({ refused, expired, cancelled, shed: refusedStreams });
  });
  metrics.show('postern_grpc_connections_ended_total', () => {
    const { endedConnections, faults } = stats();
    return Object.entries({ peer: endedConnections, fault: faults });
  });
}

/** Returns the function that logs and counts reloads. */
export function tlsReloads(log: Log, metrics: Metrics): (reload: TlsReload) => void {
  const counts = { taken: 0, refused: 0 };
  metrics.show('postern_grpc_tls_reloads_total', () => Object.entries(counts));
  return (reload) => {
    counts[reload.kind] += 1;
    switch (reload.kind) {
      case 'taken':
        log.info({ notAfter: reload.notAfter }, 'new connections use the changed TLS files');
        break;
      case 'refused':
        log.error(
          { problem: reload.problem },
          'the changed TLS files cannot be used, so the previous ones stay in use. Correct the files',
        );
        break;
      default:
        reload satisfies never;
    }
  };
}
