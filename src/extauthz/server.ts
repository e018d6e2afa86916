/** The gRPC server that Envoy asks: `envoy.service.auth.v3.Authorization/Check`, and health. */

import {
  logVerbosity,
  Server,
  type ServerCredentials,
  type ServerUnaryCall,
  type ServiceDefinition,
  type sendUnaryData,
  setLogVerbosity,
} from '@grpc/grpc-js';
import type { Gate } from './gate.ts';
import { createHealth, HEALTH } from './health.ts';
import { openToGroup, removeStaleSocket, socketPath } from './listen-address.ts';
import { rawMethod } from './raw-method.ts';
import { serverCredentials, type TlsFiles } from './tls.ts';

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
  /** Not ready at once, no new connections or calls; resolves when the running checks are answered, or after `graceMs`, when what is left is cut. */
  drain(graceMs: number): Promise<void>;
}

const MAX_MESSAGE_BYTES = 16 * 1024 * 1024;

/** Node's own bounds hold besides: 64 KiB of headers, 128 header pairs, 64 KiB windows. */
const OPTIONS = {
  'grpc.max_receive_message_length': MAX_MESSAGE_BYTES,
  'grpc.max_concurrent_streams': 1024,
  'grpc.keepalive_time_ms': 30_000,
  'grpc.keepalive_timeout_ms': 10_000,
};

const AUTHORIZATION: ServiceDefinition = { Check: rawMethod('/envoy.service.auth.v3.Authorization/Check', false) };

/** Starts listening. Rejects with one sentence that says what is wrong with the address or the TLS files. */
export async function startExtAuthz(gate: Gate, options: ExtAuthzOptions): Promise<ExtAuthzServer> {
  // What it would print on the console comes back as an error, or is a peer's business.
  setLogVerbosity(logVerbosity.NONE);
  const server = new Server(OPTIONS);
  const health = createHealth();
  server.addService(AUTHORIZATION, {
    Check(call: ServerUnaryCall<Buffer, Buffer>, done: sendUnaryData<Buffer>): void {
      const answer = gate(call.request);
      if (answer instanceof Promise) void answer.then((bytes) => done(null, bytes));
      else done(null, answer);
    },
  });
  server.addService(HEALTH, health.implementation);
  const address = await listen(server, options, await serverCredentials(options.tls));
  let drained: Promise<void> | undefined;
  return {
    address,
    setReady: (ready) => health.setServing(ready && drained === undefined),
    drain(graceMs) {
      health.setServing(false);
      health.endWatches();
      drained ??= shutDown(server, target(address), graceMs);
      return drained;
    },
  };
}

async function listen(server: Server, options: ExtAuthzOptions, credentials: ServerCredentials): Promise<string> {
  const { listen: address, shared = false } = options;
  const path = socketPath(address);
  if (path !== undefined && !shared) await removeStaleSocket(path);
  const port = await bind(server, target(address), credentials);
  if (path === undefined) return address.replace(/:\d+$/, `:${port}`);
  await openToGroup(path);
  return address;
}

/** The address as the library spells it. */
function target(address: string): string {
  const path = socketPath(address);
  return path === undefined ? address : `unix:${path}`;
}

function bind(server: Server, address: string, credentials: ServerCredentials): Promise<number> {
  return new Promise((resolve, reject) => {
    try {
      server.bindAsync(address, credentials, (cause, port) => {
        if (cause === null) resolve(port);
        else reject(cannotListen(address, cause));
      });
    } catch (cause) {
      reject(
        new Error(`cannot listen on ${address}: ${cause instanceof Error ? cause.message : 'bad certificate or key'}`, { cause }),
      );
    }
  });
}

/** The library wraps what the system said in a sentence about itself. */
function cannotListen(address: string, cause: unknown): Error {
  const reason = cause instanceof Error ? cause.message.replace(/^.* errors: \[(.*)\]$/, '$1') : 'unknown reason';
  return new Error(`cannot listen on ${address}: ${reason}`, { cause });
}

/** The library's own end of waiting; ours comes a little later, in case it finds a connection that it cannot cut. */
const CUT_MS = 500;

function shutDown(server: Server, address: string, graceMs: number): Promise<void> {
  return new Promise((resolve) => {
    const cut = setTimeout(() => {
      server.forceShutdown();
      resolve();
    }, graceMs + CUT_MS);
    // First, because it cuts after the grace only what it was the first to close.
    server.drain(address, graceMs);
    server.tryShutdown(() => {
      clearTimeout(cut);
      resolve();
    });
  });
}
