/** The gRPC listener, as metrics. */

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

/** What became of TLS files that changed on disk. */
export type TlsReload =
  | { readonly kind: 'taken'; readonly notAfter: string }
  | { readonly kind: 'refused'; readonly problem: string };

export function watchCalls(metrics: Metrics, stats: () => CallStats): void {
  metrics.gauges({ name: 'postern_grpc_calls', help: 'Open calls with one message.' }, ['kind'], () => {
    const { open, unfinished } = stats();
    return [
      { labels: { kind: 'open' }, value: open },
      { labels: { kind: 'unfinished_message' }, value: unfinished },
    ];
  });
  metrics.gauge(
    { name: 'postern_grpc_unfinished_bytes', help: 'Memory of partly received messages.' },
    () => stats().unfinishedBytes,
  );
  metrics.counters(
    { name: 'postern_grpc_calls_ended_total', help: 'Calls that ended before their answer was delivered.' },
    ['reason'],
    () => {
      const { refused, expired, cancelled, refusedStreams } = stats();
      return [
        { labels: { reason: 'refused' }, value: refused },
        { labels: { reason: 'expired' }, value: expired },
        { labels: { reason: 'cancelled' }, value: cancelled },
        { labels: { reason: 'shed' }, value: refusedStreams },
      ];
    },
  );
  metrics.counters(
    { name: 'postern_grpc_connections_ended_total', help: 'Connections to the gRPC listener that the server closed.' },
    ['reason'],
    () => {
      const { endedConnections, faults } = stats();
      return [
        { labels: { reason: 'peer' }, value: endedConnections },
        { labels: { reason: 'fault' }, value: faults },
      ];
    },
  );
}

/** Returns what logs and counts reloads. */
export function tlsReloads(log: Log, metrics: Metrics): (reload: TlsReload) => void {
  const counts = { taken: 0, refused: 0 };
  metrics.counters(
    { name: 'postern_grpc_tls_reloads_total', help: 'TLS files that changed on disk, by outcome.' },
    ['outcome'],
    () => Object.entries(counts).map(([outcome, value]) => ({ labels: { outcome }, value })),
  );
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
