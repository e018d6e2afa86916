/**
 * `grpc.testing.TestService` on the gRPC transports.
 * https://github.com/grpc/grpc/blob/master/doc/interop-test-descriptions.md
 */

import { join } from 'node:path';
import { loadSync } from '@grpc/proto-loader';
import type { GrpcMethods } from '../../../src/extauthz/grpc/methods.ts';
import type { GrpcFailure } from '../../../src/extauthz/grpc/status.ts';

interface EchoStatus {
  readonly code: number;
  readonly message: string;
}

interface SimpleRequest {
  readonly response_size: number;
  readonly response_status: EchoStatus | null;
}

interface StreamingRequest {
  readonly response_parameters: readonly { readonly size: number }[];
  readonly response_status: EchoStatus | null;
}

interface Method<Request> {
  requestDeserialize(bytes: Buffer): Request;
  responseSerialize(message: object): Buffer;
}

const service = loadSync(join(import.meta.dirname, 'interop.proto'), { keepCase: true, defaults: true })[
  'grpc.testing.TestService'
];

function method<Request>(name: string): Method<Request> {
  if (service === undefined || 'format' in service) throw new Error('no TestService in interop.proto');
  const found: unknown = service[name];
  if (found === undefined) throw new Error(`no ${name} in interop.proto`);
  // The library gives the shape of the definition, which it cannot know the type of.
  return found as Method<Request>;
}

const unary = method<SimpleRequest>('UnaryCall');
const streaming = method<StreamingRequest>('StreamingOutputCall');
const payload = (size: number): object => ({ payload: { type: 0, body: Buffer.alloc(size) } });

export const INTEROP_METHODS: GrpcMethods = {
  '/grpc.testing.TestService/EmptyCall': { kind: 'unary', answer: () => Buffer.alloc(0) },
  '/grpc.testing.TestService/UnaryCall': {
    kind: 'unary',
    answer(message) {
      const { response_size, response_status } = unary.requestDeserialize(message);
      return failureOf(response_status) ?? unary.responseSerialize(payload(response_size));
    },
  },
  '/grpc.testing.TestService/StreamingOutputCall': {
    kind: 'server-stream',
    open(message, call) {
      const { response_parameters, response_status } = streaming.requestDeserialize(message);
      for (const { size } of response_parameters) call.send(streaming.responseSerialize(payload(size)));
      call.end();
      return failureOf(response_status);
    },
  },
  '/grpc.testing.TestService/StreamingInputCall': {
    kind: 'client-stream',
    open: () => () => undefined,
    answer: Buffer.alloc(0),
  },
  // No transport sends messages before the client has sent its last one, so this method has failures only.
  '/grpc.testing.TestService/FullDuplexCall': {
    kind: 'client-stream',
    open: () => (message) => failureOf(streaming.requestDeserialize(message).response_status),
    answer: Buffer.alloc(0),
  },
};

function failureOf(status: EchoStatus | null): GrpcFailure | undefined {
  if (status === null || status.code === 0) return undefined;
  return { kind: 'failure', status: status.code, message: percentEncoded(status.message) };
}

/** "Percent-Encoded" of https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md */
function percentEncoded(text: string): string {
  let encoded = '';
  for (const byte of Buffer.from(text)) {
    const isPlain = byte >= 0x20 && byte <= 0x7e && byte !== 0x25;
    encoded += isPlain ? String.fromCharCode(byte) : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  }
  return encoded;
}
