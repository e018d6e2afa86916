/**
 * The gRPC server on `@grpc/grpc-js`. The definitions of its methods come from `protos/`, and messages stay raw bytes.
 */

import { join } from 'node:path';
import { createSecureContext } from 'node:tls';
import {
  experimental,
  logVerbosity,
  Server,
  ServerCredentials,
  type ServerOptions,
  setLogVerbosity,
} from '@grpc/grpc-js';
import { load } from '@grpc/proto-loader';
import { everySweep } from '../grpc/call-stats.ts';
import { MAX_MESSAGE_BYTES } from '../grpc/messages.ts';
import type { GrpcMethods } from '../grpc/methods.ts';
import type { StartGrpc } from '../grpc/server.ts';
import { MAX_STREAMS, PING_EVERY_MS } from '../http2/bounds.ts';
import { type ListenAt, secureOptions, type TlsMaterial } from '../http2/listener.ts';
import { GrpcJsCalls } from './calls.ts';

const PROTOS = join(import.meta.dirname, '../../../protos');
const SERVICES = [
  'envoy/service/auth/v3/external_auth.proto',
  'envoy/service/accesslog/v3/als.proto',
  'grpc/health/v1/health.proto',
];
const OPTIONS: ServerOptions = {
  'grpc.max_receive_message_length': MAX_MESSAGE_BYTES,
  'grpc.max_concurrent_streams': MAX_STREAMS,
  'grpc.keepalive_time_ms': PING_EVERY_MS,
  'grpc.keepalive_timeout_ms': PING_EVERY_MS,
  'grpc.enable_channelz': 0,
  // MB of header fields and outgoing frames of one connection.
  'grpc-node.max_session_memory': 64,
};
const asIs = (bytes: Buffer): Buffer => bytes;

/** Starts a server on grpc-js. Also rejects if the definition files do not have one of the methods. */
export const startGrpcOnGrpcJs: StartGrpc = async (methods, at, tls, options = {}) => {
  // grpc-js writes text to stderr, which is for this server's own log.
  setLogVerbosity(logVerbosity.NONE);
  const calls = new GrpcJsCalls(options.nowMs);
  const server = new Server({ ...OPTIONS, interceptors: [calls.interceptor] });
  await register(server, methods, calls, options.protos ?? SERVICES);
  const certificates = tls === undefined ? undefined : new Certificates(tls);
  const port = await bind(server, at, certificates?.credentials() ?? ServerCredentials.createInsecure());
  const stopSweeps = (options.sweeping ?? everySweep)(() => calls.sweep());
  return {
    port,
    get stats() {
      return calls.stats;
    },
    setTls(next) {
      if (certificates === undefined) throw new Error('a server without TLS accepts no certificate');
      certificates.replace(next);
    },
    async drain(graceMs) {
      const closed = Promise.withResolvers<void>();
      server.tryShutdown(() => closed.resolve());
      const cut = setTimeout(() => {
        server.forceShutdown();
        closed.resolve();
      }, graceMs);
      await closed.promise;
      clearTimeout(cut);
      stopSweeps();
      calls.abandon();
    },
  };
};

const TYPES = { unary: 'unary', 'server-stream': 'serverStream', 'client-stream': 'clientStream' } as const;

async function register(server: Server, methods: GrpcMethods, calls: GrpcJsCalls, files: readonly string[]) {
  const definitions = Object.values(await load([...files], { includeDirs: [PROTOS] }));
  const known = definitions.flatMap((definition) => ('format' in definition ? [] : Object.values(definition)));
  for (const [path, method] of Object.entries(methods)) {
    const definition = known.find((each) => each.path === path);
    if (definition?.requestStream !== (method.kind === 'client-stream')) {
      throw new Error(`the definition files have no ${method.kind} method ${path}`);
    }
    server.register(path, calls.handlerOf(method), asIs, asIs, TYPES[method.kind]);
  }
}

/** Returns the port; 0 for a Unix socket. */
function bind(server: Server, at: ListenAt, credentials: ServerCredentials): Promise<number> {
  const address = 'path' in at ? `unix:${at.path}` : `${at.host.includes(':') ? `[${at.host}]` : at.host}:${at.port}`;
  return new Promise((resolve, reject) => {
    server.bindAsync(address, credentials, (error, port) => {
      if (error === null) resolve('path' in at ? 0 : port);
      // grpc-js appends the system's error of each address in brackets.
      else reject(new Error(/\[(.+)\]$/.exec(error.message)?.[1] ?? error.message, { cause: error }));
    });
  });
}

/** Passes certificate, key and client CA to grpc-js: at the start, and when they are replaced. */
class Certificates implements experimental.CertificateProvider {
  #tls: TlsMaterial;
  #onCa: experimental.CaCertificateUpdateListener | undefined;
  #onIdentity: experimental.IdentityCertificateUpdateListener | undefined;

  /** Throws OpenSSL's error if certificate and key do not match. */
  constructor(tls: TlsMaterial) {
    createSecureContext(secureOptions(tls));
    this.#tls = tls;
  }

  credentials(): ServerCredentials {
    const requiresClient = this.#tls.clientCa !== undefined;
    return experimental.createCertificateProviderServerCredentials(this, requiresClient ? this : null, requiresClient);
  }

  /** Throws before it changes anything: after a certificate that it cannot use, grpc-js rejects every connection. */
  replace(tls: TlsMaterial): void {
    createSecureContext(secureOptions(tls));
    this.#tls = tls;
    this.#publish();
  }

  addCaCertificateListener(listener: experimental.CaCertificateUpdateListener): void {
    this.#onCa = listener;
  }

  addIdentityCertificateListener(listener: experimental.IdentityCertificateUpdateListener): void {
    this.#onIdentity = listener;
    // grpc-js does not apply an update that comes before this call returns.
    queueMicrotask(() => this.#publish());
  }

  removeCaCertificateListener(): void {
    this.#onCa = undefined;
  }

  removeIdentityCertificateListener(): void {
    this.#onIdentity = undefined;
  }

  #publish(): void {
    const { cert, key, clientCa } = this.#tls;
    if (clientCa !== undefined) this.#onCa?.({ caCertificate: clientCa });
    this.#onIdentity?.({ certificate: cert, privateKey: key });
  }
}
