/** gRPC methods, and what begins a call of each. */

import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import { type ClientStreamMethod, serveClientStream } from './client-stream.ts';
import { MAX_MESSAGE_BYTES } from './messages.ts';
import type { OpenCalls } from './open-calls.ts';
import { ServedStream, type ServerStreamMethod } from './server-stream.ts';
import { ServedUnaryCall, type UnaryMethod } from './unary.ts';

interface Bounded {
  /** The largest message that the method takes, in bytes; default: 17 MiB. */
  readonly maxMessageBytes?: number;
}

export type GrpcMethod = Bounded &
  (
    | { readonly kind: 'unary'; readonly answer: UnaryMethod }
    | { readonly kind: 'server-stream'; readonly open: ServerStreamMethod }
    /** `answer` is sent when the peer has sent its last message. */
    | { readonly kind: 'client-stream'; readonly open: ClientStreamMethod; readonly answer: Buffer }
  );

/** `/package.Service/Method` -> what answers it */
export type GrpcMethods = Readonly<Record<string, GrpcMethod>>;

export type StreamListener = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void;

/** Returns what is called with each new stream of this method. */
export function listenerOf(method: GrpcMethod, calls: OpenCalls): StreamListener {
  const { maxMessageBytes = MAX_MESSAGE_BYTES } = method;
  switch (method.kind) {
    case 'unary': {
      const { answer } = method;
      return (stream, headers) => new ServedUnaryCall(stream, calls, maxMessageBytes, timeoutOf(headers), answer).start();
    }
    case 'server-stream': {
      const { open } = method;
      return (stream, headers) => new ServedStream(stream, calls, maxMessageBytes, timeoutOf(headers), open).start();
    }
    case 'client-stream': {
      const { open, answer } = method;
      return (stream) => serveClientStream(stream, calls, maxMessageBytes, open, answer);
    }
    default:
      return method satisfies never;
  }
}

function timeoutOf(headers: IncomingHttpHeaders): string | undefined {
  const timeout = headers['grpc-timeout'];
  return typeof timeout === 'string' ? timeout : undefined;
}
