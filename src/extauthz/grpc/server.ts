/** A gRPC server on Node's HTTP/2: TCP or a Unix socket, plain or TLS. https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md */

import { createSecureServer, createServer, type Http2Server, type ServerHttp2Stream, type ServerOptions } from 'node:http2';
import { Server as NetServer } from 'node:net';
import { fail, type GrpcMethods, ignore, listenerOf } from './calls.ts';
import { trackConnections } from './connections.ts';
import { failure } from './status.ts';

/** PEM. */
export interface TlsMaterial {
  readonly cert: Buffer;
  readonly key: Buffer;
  /** When given, only clients with a certificate of this authority are let in. */
  readonly clientCa: Buffer | undefined;
}

export interface GrpcServer {
  /** The port that it listens on; 0 for a Unix socket. */
  readonly port: number;
  /** No new connections at once; resolves when the running calls are answered, or cut after `graceMs`. */
  drain(graceMs: number): Promise<void>;
}

/** Where to listen, as `net.Server` spells it. */
export type ListenAt = { readonly host: string; readonly port: number } | { readonly path: string };

/** Node's own bounds hold besides: 64 KiB of headers, 128 header pairs, 64 KiB windows. */
const OPTIONS: ServerOptions = {
  settings: { maxConcurrentStreams: 1024, enablePush: false },
  maxSessionMemory: 64,
};

const UNKNOWN = failure('unimplemented', 'this server has no such method');

/** Rejects with the system's error when it cannot listen, and with OpenSSL's when certificate and key are none. */
export async function startGrpc(methods: GrpcMethods, at: ListenAt, tls: TlsMaterial | undefined): Promise<GrpcServer> {
  const server = tls === undefined ? createServer(OPTIONS) : createSecureServer({ ...OPTIONS, ...secure(tls) });
  const connections = trackConnections(server);
  serveCalls(server, methods);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(at, () => {
      server.off('error', reject);
      resolve();
    });
  });
  server.on('error', ignore);
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    drain(graceMs) {
      // Only the listening ends here; `Http2Server.close` would close the connections before their peers have heard of it.
      NetServer.prototype.close.call(server);
      return connections.drain(graceMs);
    },
  };
}

function serveCalls(server: Http2Server, methods: GrpcMethods): void {
  const listeners = new Map(Object.entries(methods).map(([path, method]) => [path, listenerOf(method)]));
  server.on('stream', (stream: ServerHttp2Stream, headers) => {
    const contentType = headers['content-type'];
    if (headers[':method'] !== 'POST') return refuse(stream, 405);
    if (contentType?.startsWith('application/grpc') !== true) return refuse(stream, 415);
    const listener = listeners.get(headers[':path'] ?? '');
    if (listener !== undefined) return listener(stream);
    stream.on('error', ignore);
    fail(stream, UNKNOWN);
  });
}

/** No gRPC: an HTTP answer, as the protocol asks. */
function refuse(stream: ServerHttp2Stream, status: number): void {
  stream.on('error', ignore);
  stream.respond({ ':status': status }, { endStream: true });
}

function secure({ cert, key, clientCa }: TlsMaterial) {
  const client = clientCa === undefined ? {} : { ca: clientCa, requestCert: true, rejectUnauthorized: true };
  return { cert, key, minVersion: 'TLSv1.2' as const, ...client };
}
