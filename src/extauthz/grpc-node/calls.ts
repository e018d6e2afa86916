/** Begins the calls of each method. */

import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import { MAX_MESSAGE_BYTES } from '../grpc/messages.ts';
import type { GrpcMethod } from '../grpc/methods.ts';
import { serveClientStream } from './client-stream.ts';
import type { OpenCalls } from './open-calls.ts';
import { ServedStream } from './server-stream.ts';
import { ServedUnaryCall } from './unary.ts';

export type StreamListener = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void;

/** Returns what is called with each new stream of this method. */
export function listenerOf(method: GrpcMethod, calls: OpenCalls): StreamListener {
  const { maxMessageBytes = MAX_MESSAGE_BYTES } = method;
  switch (method.kind) {
    case 'unary': {
      const { answer } = method;
      return (stream, headers) =>
        new ServedUnaryCall(stream, calls, maxMessageBytes, timeoutOf(headers), answer).start();
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
