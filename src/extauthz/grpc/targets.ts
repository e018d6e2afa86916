/** Maps the head of a request to a method, and opens its stream. */

import type { Connection } from '../http2/connection.ts';
import { CANCEL, NO_ERROR } from '../http2/frames.ts';
import type { ReadTarget } from '../http2/header-blocks.ts';
import type { RequestHead } from '../http2/request-head.ts';
import { Stream, type Target } from '../http2/stream.ts';
import { failureHead, httpHead, NOT_GRPC_TEXT } from './answer-bytes.ts';
import { FAILED_LINGER_MS, MAX_CALL_MS, UNKNOWN_METHOD } from './call-stats.ts';
import { ServedIncomingCall } from './client-stream.ts';
import { isGrpc } from './content-type.ts';
import { MAX_MESSAGE_BYTES } from './messages.ts';
import type { GrpcMethod, GrpcMethods } from './methods.ts';
import type { ServedCalls } from './served-calls.ts';
import { ServedStream } from './server-stream.ts';
import { readTimeout } from './timeout.ts';
import { ServedUnaryCall } from './unary.ts';

/** A method with the properties of one distinct header block. */
export class CallTarget implements Target {
  readonly contentLength: number;
  readonly kind: number;
  readonly calls: ServedCalls;
  readonly maxBytes: number;
  readonly timeoutMs: number;
  readonly #method: GrpcMethod;

  constructor(method: GrpcMethod, kind: number, calls: ServedCalls, head: RequestHead) {
    const timeoutMs = readTimeout(head.timeout);
    this.contentLength = head.contentLength;
    this.kind = kind;
    this.calls = calls;
    this.maxBytes = method.maxMessageBytes ?? MAX_MESSAGE_BYTES;
    this.timeoutMs = timeoutMs === undefined || timeoutMs > MAX_CALL_MS ? MAX_CALL_MS : timeoutMs;
    this.#method = method;
  }

  open(connection: Connection, id: number): Stream {
    const method = this.#method;
    switch (method.kind) {
      case 'unary':
        return new ServedUnaryCall(connection, id, this, method.answer);
      case 'server-stream':
        return new ServedStream(connection, id, this, method.open);
      case 'client-stream':
        return new ServedIncomingCall(connection, id, this, method.answer).start(method.open);
      default:
        return method satisfies never;
    }
  }
}

/** A request that calls no method. */
class RefusedTarget implements Target {
  readonly contentLength: number;
  readonly kind = 0;
  readonly #head: Buffer;
  readonly #text: Buffer | undefined;

  /** @param text the content after the head; undefined = the head is the whole answer */
  constructor(contentLength: number, head: Buffer, text: Buffer | undefined) {
    this.contentLength = contentLength;
    this.#head = head;
    this.#text = text;
  }

  open(connection: Connection, id: number): Stream {
    const stream = new RefusedRequest(connection, id, this);
    stream.respond(this.#head, this.#text === undefined);
    if (this.#text === undefined) {
      connection.stopPeer(stream);
    } else {
      // The client does not use gRPC. It may finish its request, which the server discards.
      stream.send(this.#text);
      stream.finish(undefined);
    }
    return stream;
  }
}

/** A stream that is answered when it opens. The server discards what the peer still sends. */
class RefusedRequest extends Stream {
  readonly #begunMs: number;

  constructor(connection: Connection, id: number, target: Target) {
    super(connection, id, target);
    this.#begunMs = connection.nowMs;
  }

  override take(): void {
    // Discarded.
  }
  override ended(): void {
    // Answered already.
  }
  override run(): void {
    // Nothing is run.
  }
  override sent(): void {
    // Nothing depends on it.
  }
  override settled(): void {
    // Nothing depends on it.
  }
  override closed(): void {
    // Nothing is held.
  }
  override sweep(nowMs: number): void {
    // The peer has the answer and does not end its side, or does not read the answer.
    const boundMs = this.localEnded ? FAILED_LINGER_MS : MAX_CALL_MS;
    if (nowMs - this.#begunMs >= boundMs) this.connection.reset(this, this.localEnded ? NO_ERROR : CANCEL);
  }
}

const NOT_POST = httpHead(405);
const NOT_GRPC = httpHead(415);
const UNKNOWN = failureHead(UNKNOWN_METHOD);

export function targetsOf(methods: GrpcMethods, calls: ServedCalls): ReadTarget {
  const byPath = new Map(Object.entries(methods).map(([path, method], i) => [path, { method, kind: i + 1 }]));
  return (head) => {
    if (head.method !== 'POST') return new RefusedTarget(head.contentLength, NOT_POST, NOT_GRPC_TEXT);
    if (!isGrpc(head.contentType)) return new RefusedTarget(head.contentLength, NOT_GRPC, NOT_GRPC_TEXT);
    const found = byPath.get(head.path);
    if (found === undefined) return new RefusedTarget(head.contentLength, UNKNOWN, undefined);
    return new CallTarget(found.method, found.kind, calls, head);
  };
}
