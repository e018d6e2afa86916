/** A gRPC server on Node's HTTP/2: TCP or a Unix socket, plain or TLS. https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md */

import {
  createSecureServer,
  createServer,
  type Http2SecureServer,
  type Http2Server,
  type ServerHttp2Stream,
  type ServerOptions,
} from 'node:http2';
import { Server as NetServer } from 'node:net';
import { createSecureContext } from 'node:tls';
import { SWEEP_EVERY_MS, type Ticking, UNKNOWN_METHOD } from '../grpc/call-stats.ts';
import { isGrpc } from '../grpc/content-type.ts';
import type { GrpcMethods } from '../grpc/methods.ts';
import type { StartGrpc } from '../grpc/server.ts';
import type { TlsMaterial } from '../http2/listener.ts';
import { listenerOf } from './calls.ts';
import { trackConnections } from './connections.ts';
import { OpenCalls } from './open-calls.ts';
import { fail, ignore } from './replies.ts';

/** More resets a second than one process can read. */
const NO_RESET_LIMIT = 1_000_000;

/**
 * Node's own bounds hold besides: 64 KiB of headers, 128 header pairs, 64 KiB windows, 32 entries of a SETTINGS frame, 10 pings without
 * an answer, 1000 invalid frames. Envoy causes none of these, whatever its clients send: it writes its frames itself.
 */
const OPTIONS: ServerOptions = {
  settings: { maxConcurrentStreams: 1024, enablePush: false },
  maxSessionMemory: 64,
  // Envoy forwards the resets of its clients, and all of them come on the one connection that carries the checks of everybody else and
  // the access log. nghttp2's limit (1000, then 33 a second) cuts that connection, which is what the attacker wants. A reset is no more
  // work than a check: at most 1024 streams are open at once, a stream that is reset in the same read is never decided about, and a
  // check that waits gives up at once. Who resets faster than a process can read takes no more than who asks faster.
  streamResetBurst: NO_RESET_LIMIT,
  streamResetRate: NO_RESET_LIMIT,
};

const everySweep: Ticking = (tick) => {
  const timer = setInterval(tick, SWEEP_EVERY_MS).unref();
  return () => clearInterval(timer);
};

/** Starts a server on Node's HTTP/2. */
export const startGrpcOnNode: StartGrpc = async (methods, at, tls, options = {}) => {
  const secured = tls === undefined ? undefined : createSecureServer({ ...OPTIONS, ...secure(tls), ...clients(tls) });
  const server = secured ?? createServer(OPTIONS);
  const calls = new OpenCalls(options);
  const connections = trackConnections(server);
  serveCalls(server, methods, calls);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(at, () => {
      server.off('error', reject);
      resolve();
    });
  });
  server.on('error', ignore);
  const stopSweeps = (options.sweeping ?? everySweep)(() => calls.sweep());
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    get stats() {
      return { ...calls.stats, refusedStreams: 0, endedConnections: 0, faults: 0 };
    },
    setTls(next) {
      if (secured === undefined) throw new Error('a server without TLS accepts no certificate');
      const options = secure(next);
      // Throws before the server has forgotten anything.
      createSecureContext(options);
      secured.setSecureContext(options);
    },
    async drain(graceMs) {
      // Only the listening ends here; `Http2Server.close` would close the connections before their peers have heard of it.
      NetServer.prototype.close.call(server);
      await connections.drain(graceMs);
      stopSweeps();
      // What was cut with its connection is released, too.
      calls.sweep();
    },
  };
};

function serveCalls(server: Http2Server | Http2SecureServer, methods: GrpcMethods, calls: OpenCalls): void {
  const listeners = new Map(Object.entries(methods).map(([path, method]) => [path, listenerOf(method, calls)]));
  server.on('stream', (stream: ServerHttp2Stream, headers) => {
    const contentType = headers['content-type'];
    if (headers[':method'] !== 'POST') return refuse(stream, 405);
    if (!isGrpc(contentType)) return refuse(stream, 415);
    const listener = listeners.get(headers[':path'] ?? '');
    if (listener !== undefined) return listener(stream, headers);
    stream.on('error', ignore);
    fail(stream, UNKNOWN_METHOD);
  });
}

/** No gRPC: an HTTP answer, as the protocol asks. */
function refuse(stream: ServerHttp2Stream, status: number): void {
  stream.on('error', ignore);
  if (!(stream.destroyed || stream.closed)) stream.respond({ ':status': status }, { endStream: true });
}

/** What can change while the server runs. */
function secure({ cert, key, clientCa }: TlsMaterial) {
  return { cert, key, minVersion: 'TLSv1.2' as const, ...(clientCa === undefined ? {} : { ca: clientCa }) };
}

/** What cannot: whether clients are asked for a certificate. */
function clients({ clientCa }: TlsMaterial) {
  return clientCa === undefined ? {} : { requestCert: true, rejectUnauthorized: true };
}
