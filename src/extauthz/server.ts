/** The gRPC server that Envoy asks: `envoy.service.auth.v3.Authorization/Check`, and health. */

import type { Gate } from './gate.ts';
import { type GrpcServer, type ListenAt, startGrpc, type TlsMaterial } from './grpc/server.ts';
import { createHealth } from './health.ts';
import { openToGroup, removeStaleSocket, socketPath } from './listen-address.ts';
import { readTlsFiles, type TlsFiles } from './tls.ts';

export interface ExtAuthzOptions {
  /** `host:port` (port 0 takes a free one) or `unix:/path`. */
  readonly listen: string;
  readonly tls?: TlsFiles | undefined;
  /** True where other processes of this server share the address, and the first of them has made way for a socket. */
  readonly shared?: boolean;
}

export interface ExtAuthzServer {
  /** Where it listens, with the real port. */
  readonly address: string;
  /** What health checks are told from now on. It begins as not ready. */
  setReady(ready: boolean): void;
  /** Not ready at once, no new connections; resolves when the running checks are answered, or after `graceMs`, when what is left is cut. */
  drain(graceMs: number): Promise<void>;
}

/** Starts listening. Rejects with one sentence that says what is wrong with the address or the TLS files. */
export async function startExtAuthz(gate: Gate, options: ExtAuthzOptions): Promise<ExtAuthzServer> {
  const { listen: address, shared = false } = options;
  const health = createHealth();
  const tls = options.tls === undefined ? undefined : await readTlsFiles(options.tls);
  const path = socketPath(address);
  if (path !== undefined && !shared) await removeStaleSocket(path);
  const methods = { '/envoy.service.auth.v3.Authorization/Check': { kind: 'unary', answer: gate }, ...health.methods } as const;
  const server = await start(methods, address, tls);
  if (path !== undefined) await openToGroup(path);
  let drained: Promise<void> | undefined;
  return {
    address: path === undefined ? address.replace(/:\d+$/, `:${server.port}`) : address,
    setReady: (ready) => health.setServing(ready && drained === undefined),
    drain(graceMs) {
      health.setServing(false);
      health.endWatches();
      drained ??= server.drain(graceMs);
      return drained;
    },
  };
}

async function start(
  methods: Parameters<typeof startGrpc>[0],
  address: string,
  tls: TlsMaterial | undefined,
): Promise<GrpcServer> {
  try {
    return await startGrpc(methods, listenAt(address), tls);
  } catch (cause) {
    throw new Error(`cannot listen on ${address}: ${cause instanceof Error ? cause.message : 'bad certificate or key'}`, {
      cause,
    });
  }
}

/** The address as Node spells it. */
function listenAt(address: string): ListenAt {
  const path = socketPath(address);
  if (path !== undefined) return { path };
  const colon = address.lastIndexOf(':');
  return { host: address.slice(0, colon).replace(/^\[(.*)\]$/, '$1'), port: Number(address.slice(colon + 1)) };
}
