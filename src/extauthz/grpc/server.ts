/** A gRPC server: TCP or a Unix socket, plain or TLS. https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md */

import type { CallStats } from '../../telemetry/grpc-metrics.ts';
import { Http2Listener, type ListenAt, type TlsMaterial } from '../http2/listener.ts';
import { type CallBounds, everySweep, type Ticking } from './call-stats.ts';
import type { GrpcMethods } from './methods.ts';
import { ServedCalls } from './served-calls.ts';
import { targetsOf } from './targets.ts';

export interface GrpcServer {
  /** The port of the listener; 0 for a Unix socket. */
  readonly port: number;
  readonly stats: CallStats;
  /**
   * Uses this certificate and this client CA for new connections. Open connections continue. Throws OpenSSL's error,
   * and changes nothing, if certificate and key are invalid or do not match.
   */
  setTls(tls: TlsMaterial): void;
  /**
   * Accepts no new connections. Resolves when the running calls are answered, or after `graceMs`, when it cuts them.
   */
  drain(graceMs: number): Promise<void>;
}

interface GrpcOptions extends CallBounds {
  /** Default: every 250 ms. */
  readonly sweeping?: Ticking;
  /** Definition files of the methods, which `grpc-js` loads. Default: those of Envoy's services and of gRPC health. */
  readonly protos?: readonly string[];
}

/** `built-in` runs on this project's HTTP/2 server, `grpc-js` on the package `@grpc/grpc-js`. */
export type GrpcTransport = 'built-in' | 'grpc-js';

/**
 * Starts a server. Rejects with the system's error if it cannot listen, and with OpenSSL's error if certificate and key
 * are invalid.
 */
export type StartGrpc = (
  methods: GrpcMethods,
  at: ListenAt,
  tls: TlsMaterial | undefined,
  options?: GrpcOptions,
) => Promise<GrpcServer>;

/** Starts the built-in server. */
export const startGrpc: StartGrpc = async (methods, at, tls, options = {}) => {
  const calls = new ServedCalls(options);
  const listener = new Http2Listener({ readTarget: targetsOf(methods, calls), tls, nowMs: calls.nowMs });
  await listener.listen(at);
  const stopSweeps = (options.sweeping ?? everySweep)(() => listener.sweep());
  return {
    port: listener.port,
    get stats() {
      return { ...calls.stats, ...listener.counts };
    },
    setTls: (next) => listener.setTls(next),
    async drain(graceMs) {
      await listener.drain(graceMs);
      stopSweeps();
    },
  };
};
