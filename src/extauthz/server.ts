/** The gRPC server for Envoy: `envoy.service.auth.v3.Authorization/Check`, health, and the access log. */

import { X509Certificate } from 'node:crypto';
import type { CallStats, TlsReload } from '../telemetry/grpc-metrics.ts';
import type { AccessLogStats } from '../telemetry/metering-metrics.ts';
import { createAccessLog } from './access-log/service.ts';
import { boundsFor, DEFAULT_MAX_BODY_BYTES } from './bounds.ts';
import type { CheckHandler } from './check-handler.ts';
import type { GrpcMethods } from './grpc/methods.ts';
import type { GrpcServer, GrpcTransport } from './grpc/server.ts';
import { loadTransport } from './grpc/transports.ts';
import type { UnfinishedBounds } from './grpc/unfinished.ts';
import { createHealth } from './health.ts';
import type { ListenAt, TlsMaterial } from './http2/listener.ts';
import { openToGroup, removeStaleSocket, socketPath } from './listen-address.ts';
import type { FinishedListener, OtherGateListener } from './ports.ts';
import { readTlsFiles, type TlsFiles, type TlsReloadParts, watchTlsFiles } from './tls-files.ts';

export interface ExtAuthzOptions {
  /** `host:port` (port 0 takes a free one) or `unix:/path`. */
  readonly listen: string;
  readonly tls?: TlsFiles | undefined;
  /** Default: `built-in`. */
  readonly transport?: GrpcTransport;
  /** Called when the TLS files have changed: they are in use, or they are rejected and the former files stay in use. */
  readonly onTlsReload?: (reload: TlsReload) => void;
  /**
   * Called with the end of the certificate in use, in milliseconds since the epoch: at the start, and after each
   * change.
   */
  readonly onCertificate?: ((endMs: number) => void) | undefined;
  /** Set by tests. Default: the server reads the files every 5 s. */
  readonly tlsTicking?: TlsReloadParts['ticking'];
  /** True if other processes of this server share the address, and the first of them has removed a stale socket. */
  readonly shared?: boolean;
  /** Receives the reports of finished requests. Default: the server does not take an access log. */
  readonly listener?: FinishedListener;
  /** Takes the reports about another gate, on the same streams. Default: they are dropped. */
  readonly otherGate?: OtherGateListener;
  /** The largest body of a check, in bytes. Unfinished messages may take a multiple of it. Default: 1 MiB. */
  readonly maxBodyBytes?: number;
}

export interface ExtAuthzServer {
  /** The address of the listener, with the real port. */
  readonly address: string;
  /** Sets the answer of health checks. The server begins as not ready. */
  setReady(ready: boolean): void;
  readonly accessLog: AccessLogStats;
  readonly calls: CallStats;
  /**
   * Reports not ready and accepts no connections. Resolves when the running checks are answered, or after `graceMs`,
   * when the server cuts the remaining connections.
   */
  drain(graceMs: number): Promise<void>;
}

const NO_LOG: AccessLogStats = { streams: 0, entries: 0, running: 0, broken: 0, unreadable: 0, failed: 0 };

/** Starts the listener. Rejects with one sentence that states the problem of the address or of the TLS files. */
export async function startExtAuthz(handler: CheckHandler, options: ExtAuthzOptions): Promise<ExtAuthzServer> {
  const {
    listen: address,
    shared = false,
    listener,
    otherGate,
    transport = 'built-in',
    maxBodyBytes = DEFAULT_MAX_BODY_BYTES,
  } = options;
  const health = createHealth();
  const accessLog = listener === undefined ? undefined : createAccessLog(listener, otherGate);
  const tls = options.tls === undefined ? undefined : await readTlsFiles(options.tls);
  const path = socketPath(address);
  if (path !== undefined && !shared) await removeStaleSocket(path);
  const methods: GrpcMethods = {
    '/envoy.service.auth.v3.Authorization/Check': { kind: 'unary', answer: handler },
    ...health.methods,
    ...accessLog?.methods,
  };
  const server = await start(methods, address, tls, transport, boundsFor(maxBodyBytes));
  if (tls !== undefined) options.onCertificate?.(Date.parse(new X509Certificate(tls.cert).validTo));
  const stopReloads =
    options.tls === undefined || tls === undefined
      ? undefined
      : watchTlsFiles({
          files: options.tls,
          inUse: tls,
          apply: (material) => server.setTls(material),
          onReload: (reload) => {
            if (reload.kind === 'taken') options.onCertificate?.(Date.parse(reload.notAfter));
            options.onTlsReload?.(reload);
          },
          ticking: options.tlsTicking,
        });
  if (path !== undefined) await openToGroup(path);
  let drained: Promise<void> | undefined;
  return {
    address: path === undefined ? address.replace(/:\d+$/, `:${server.port}`) : address,
    setReady: (ready) => health.setServing(ready && drained === undefined),
    get accessLog() {
      return accessLog?.stats ?? NO_LOG;
    },
    get calls() {
      return server.stats;
    },
    drain(graceMs) {
      stopReloads?.();
      health.setServing(false);
      health.endWatches();
      accessLog?.end();
      drained ??= server.drain(graceMs);
      return drained;
    },
  };
}

async function start(
  methods: GrpcMethods,
  address: string,
  tls: TlsMaterial | undefined,
  transport: GrpcTransport,
  unfinished: UnfinishedBounds,
): Promise<GrpcServer> {
  const startGrpc = await loadTransport(transport);
  try {
    return await startGrpc(methods, listenAt(address), tls, { unfinished });
  } catch (cause) {
    throw new Error(
      `cannot listen on ${address}: ${cause instanceof Error ? cause.message : 'bad certificate or key'}`,
      {
        cause,
      },
    );
  }
}

/** Returns the address in the form that Node takes. */
function listenAt(address: string): ListenAt {
  const path = socketPath(address);
  if (path !== undefined) return { path };
  const colon = address.lastIndexOf(':');
  return { host: address.slice(0, colon).replace(/^\[(.*)\]$/, '$1'), port: Number(address.slice(colon + 1)) };
}
