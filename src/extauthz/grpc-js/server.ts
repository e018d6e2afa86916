/** The gRPC server on `@grpc/grpc-js`: the definitions come from `protos/`, and messages stay raw bytes. */

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
import { load, type MethodDefinition } from '@grpc/proto-loader';
import { everySweep } from '../grpc/call-stats.ts';
import { MAX_MESSAGE_BYTES } from '../grpc/messages.ts';
import type { GrpcMethod } from '../grpc/methods.ts';
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

/** Starts a server on grpc-js. Rejects when `protos/` does not define one of the methods. */
export const startGrpcOnGrpcJs: StartGrpc = async (methods, at, tls, options = {}) => {
  // grpc-js writes to stderr, which is for this server's own log.
  setLogVerbosity(logVerbosity.NONE);
  const calls = new GrpcJsCalls(options.nowMs);
  const certificates = tls === undefined ? undefined : new Certificates(tls);
  const server = new Server({ ...OPTIONS, interceptors: [calls.interceptor] });
  const definitions = await readDefinitions(options.protos ?? SERVICES);
  for (const [path, method] of Object.entries(methods)) {
    server.addService(
      { [path]: rawDefinition(path, method, definitions.get(path)) },
      { [path]: calls.handlerOf(method) },
    );
  }
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

async function readDefinitions(
  files: readonly string[],
): Promise<ReadonlyMap<string, MethodDefinition<object, object>>> {
  const definitions = await load([...files], { includeDirs: [PROTOS] });
  const methods = Object.values(definitions).flatMap((definition) =>
    'format' in definition ? [] : Object.values(definition),
  );
  return new Map(methods.map((method) => [method.path, method]));
}

/** The definition with its messages as raw bytes. */
function rawDefinition(path: string, method: GrpcMethod, definition: MethodDefinition<object, object> | undefined) {
  if (definition === undefined) throw new Error(`no definition file has the method ${path}`);
  const requestStream = method.kind === 'client-stream';
  const responseStream = method.kind === 'server-stream';
  // A method that answers a stream of messages once may be defined with a stream of answers.
  if (definition.requestStream !== requestStream || (!requestStream && definition.responseStream !== responseStream)) {
    throw new Error(`the definition of ${path} is not a ${method.kind} call`);
  }
  const asIs = (bytes: Buffer): Buffer => bytes;
  return {
    path,
    requestStream,
    responseStream,
    requestSerialize: asIs,
    requestDeserialize: asIs,
    responseSerialize: asIs,
    responseDeserialize: asIs,
  };
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

  /** Throws before it changes anything: grpc-js rejects every connection after a certificate that it cannot use. */
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
    // grpc-js does not apply an update that comes before the listener is registered.
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
