/** The transports of the gRPC listener. Every test of the listener runs on both, unless it states a promise of one. */

import { join } from 'node:path';
import { test } from 'vitest';
import { type GrpcTransport, type StartGrpc, startGrpc } from '../../../src/extauthz/grpc/server.ts';
import { startGrpcOnGrpcJs } from '../../../src/extauthz/grpc-js/server.ts';

interface RegisterTest {
  (name: string, run: () => Promise<void> | void, timeoutMs?: number): void;
  readonly each: typeof test.each;
}

/** Registers no test: the runner would report a skipped one for a promise that grpc-js does not make. */
const noTest: RegisterTest = Object.assign(() => undefined, { each: () => () => undefined });

export interface Transport {
  readonly transport: GrpcTransport;
  readonly startGrpc: StartGrpc;
  /** Runs a test on this transport only if it is the built-in one. The test's comment states what grpc-js does. */
  readonly builtInTest: RegisterTest;
  /** The status of a unary call that ends without a whole message, or with two. */
  readonly wrongMessageCount: '12' | '13';
}

const protos = [join(import.meta.dirname, 't.proto')];

export const BUILT_IN: Transport = { transport: 'built-in', startGrpc, builtInTest: test, wrongMessageCount: '13' };
export const GRPC_JS: Transport = {
  transport: 'grpc-js',
  startGrpc: (methods, at, tls, options) => startGrpcOnGrpcJs(methods, at, tls, { protos, ...options }),
  builtInTest: noTest,
  wrongMessageCount: '12',
};
export const TRANSPORTS: readonly Transport[] = [BUILT_IN, GRPC_JS];
