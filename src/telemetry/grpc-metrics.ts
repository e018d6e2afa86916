/** Metrics of the gRPC listener. */

import type { Log } from './log.ts';
import type { Metrics } from './metrics.ts';

export interface CallStats {
  readonly open: number;
  readonly unfinished: number;
  readonly unfinishedBytes: number;
  readonly refused: number;
  readonly expired: number;
  readonly cancelled: number;
  readonly refusedStreams: number;
  readonly endedConnections: number;
  readonly faults: number;
}

/** The outcome of a change of TLS files on disk. */
export type TlsReload =
  | { readonly kind: 'taken'; readonly notAfter: string }
  | { readonly kind: 'refused'; readonly problem: string };

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
