/**
 * Calls that grpc-js serves, and the handlers that pass their messages to the methods as raw bytes.
 *
 * grpc-js reports a cancellation after every call. An interceptor therefore observes the trailers, which grpc-js writes
 * when nghttp2 has taken the last byte of the answer. After that, the answer counts as delivered.
 */

import {
  type handleServerStreamingCall,
  type handleUnaryCall,
  Metadata,
  type ServerErrorResponse,
  ServerInterceptingCall,
  type ServerInterceptingCallInterface,
  type ServerInterceptor,
  type ServerReadableStream,
  type StatusObject,
  type sendUnaryData,
  status,
  type UntypedHandleCall,
} from '@grpc/grpc-js';
import type { CallStats } from '../../telemetry/grpc-metrics.ts';
import { DEADLINE_PASSED, INTERNAL, MAX_CALL_MS } from '../grpc/call-stats.ts';
import { MAX_MESSAGE_BYTES, tooLarge } from '../grpc/messages.ts';
import type { GrpcMethod, Receive, Releaser, UnaryAnswer, UnaryCall } from '../grpc/methods.ts';
import { failure, type GrpcFailure } from '../grpc/status.ts';

/** grpc-js measures `grpc-timeout` by another clock than this file, in whole milliseconds. */
const CLOCK_TOLERANCE_MS = 2;
const UNTRACKED = failure('internal', 'the call has no interceptor');

type ClientStreamHandler = (call: ServerReadableStream<Buffer, Buffer>, callback: sendUnaryData<Buffer>) => void;

/** A call of one message, from its headers to its end. */
class TrackedCall implements UnaryCall {
  readonly deadlineMs: number;
  /** True until the answer was delivered, or cannot be delivered any more. */
  isPending = true;
  /** True when the method has the message. */
  isBegun = false;
  readonly #next: ServerInterceptingCallInterface;
  #isLost = false;
  #listener: (() => void) | undefined;
  #release: (() => void) | undefined;

  constructor(next: ServerInterceptingCallInterface, nowMs: number) {
    this.#next = next;
    this.deadlineMs = nowMs + Math.min(MAX_CALL_MS, Number(next.getDeadline()) - Date.now());
  }

  onCancel(listener: (() => void) | undefined): void {
    if (this.#isLost) listener?.();
    else this.#listener = listener;
  }

  releaseUnlessDelivered(releaser: Releaser, reservation: string): void {
    if (this.#isLost) releaser.release(reservation);
    else this.#release = () => releaser.release(reservation);
  }

  settle(isDelivered: boolean): void {
    if (!this.isPending) return;
    this.isPending = false;
    if (isDelivered) return;
    this.#isLost = true;
    this.#release?.();
    this.#listener?.();
  }

  expire(): void {
    this.settle(false);
    this.#next.sendStatus(responseOf(DEADLINE_PASSED));
  }
}

/** The trailers of an answer. grpc-js serializes them when it sends them, and not if the stream ends before. */
class Trailers extends Metadata {
  readonly #onSent: () => void;

  constructor(onSent: () => void) {
    super();
    this.#onSent = onSent;
  }

  override clone(): Metadata {
    return this;
  }

  override toHttp2Headers(): ReturnType<Metadata['toHttp2Headers']> {
    this.#onSent();
    return super.toHttp2Headers();
  }
}

export class GrpcJsCalls {
  readonly #nowMs: () => number;
  /** Calls of one message that are not closed, except streams that their method has opened. */
  readonly #open = new Set<TrackedCall>();
  /** grpc-js passes the same object to the interceptor and to the handler. */
  readonly #byMetadata = new WeakMap<Metadata, TrackedCall>();
  #expired = 0;
  #cancelled = 0;

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  get stats(): CallStats {
    return {
      open: this.#open.size,
      unfinished: 0,
      unfinishedBytes: 0,
      refused: 0,
      expired: this.#expired,
      cancelled: this.#cancelled,
      refusedStreams: 0,
      endedConnections: 0,
      faults: 0,
    };
  }

  readonly interceptor: ServerInterceptor = (method, next) => {
    if (method.requestStream) return new ServerInterceptingCall(next);
    const call = new TrackedCall(next, this.#nowMs());
    return new ServerInterceptingCall(next, {
      start: (proceed) =>
        proceed({
          onReceiveMetadata: (metadata, pass) => {
            this.#open.add(call);
            this.#byMetadata.set(metadata, call);
            pass(metadata);
          },
          onCancel: () => this.#closed(call),
        }),
      sendStatus: (ending, pass) => {
        if (ending.code === status.OK) {
          pass({ ...ending, metadata: new Trailers(() => call.settle(true)) });
        } else {
          call.settle(false);
          pass(ending);
        }
      },
    });
  };

  /** Ends every call whose deadline has passed. */
  sweep(): void {
    const nowMs = this.#nowMs();
    for (const call of this.#open) {
      if (!call.isPending || nowMs < call.deadlineMs) continue;
      this.#expired += 1;
      call.expire();
    }
  }

  /** Releases what open calls were granted, after the server has cut their connections. */
  abandon(): void {
    for (const call of this.#open) this.#closed(call);
  }

  handlerOf(method: GrpcMethod): UntypedHandleCall {
    const { maxMessageBytes = MAX_MESSAGE_BYTES } = method;
    switch (method.kind) {
      case 'unary': {
        const { answer } = method;
        const handler: handleUnaryCall<Buffer, Buffer> = ({ request, metadata }, callback) => {
          const reply = (result: UnaryAnswer): void => {
            if (result instanceof Uint8Array) callback(null, result);
            else callback(responseOf(result));
          };
          const call = this.#byMetadata.get(metadata);
          if (call === undefined) return reply(UNTRACKED);
          if (request.length > maxMessageBytes) return reply(tooLarge(maxMessageBytes));
          call.isBegun = true;
          Promise.try(answer, request, call)
            .then(reply, () => reply(INTERNAL))
            // An error of grpc-js while it sends an answer ends this call only.
            .catch(() => call.settle(false));
        };
        return handler;
      }
      case 'server-stream': {
        const { open } = method;
        const handler: handleServerStreamingCall<Buffer, Buffer> = (stream) => {
          const call = this.#byMetadata.get(stream.metadata);
          const outgoing = {
            send: (message: Buffer) => void (stream.writableEnded || stream.destroyed || stream.write(message)),
            end: () => void stream.end(),
            onEnd: (gone: () => void) => void stream.once('cancelled', gone),
          };
          let failed: GrpcFailure | undefined;
          if (stream.request.length > maxMessageBytes) failed = tooLarge(maxMessageBytes);
          else failed = attempt(() => open(stream.request, outgoing));
          if (failed !== undefined) stream.emit('error', responseOf(failed));
          else if (call !== undefined) {
            // The peer decides how long an open stream lasts.
            call.settle(true);
            this.#open.delete(call);
          }
        };
        return handler;
      }
      case 'client-stream': {
        const { open, answer } = method;
        const handler: ClientStreamHandler = (stream, callback) => {
          let isEnded = false;
          const end = (failed?: GrpcFailure): void => {
            if (isEnded) return;
            isEnded = true;
            if (failed === undefined) callback(null, answer);
            else callback(responseOf(failed));
          };
          const receive = open({ end, onEnd: (gone) => void stream.once('cancelled', gone) });
          if (typeof receive === 'function') receiveAll(stream, maxMessageBytes, receive, end);
          else end(receive);
        };
        return handler;
      }
      default:
        return method satisfies never;
    }
  }

  #closed(call: TrackedCall): void {
    if (call.isPending) {
      // grpc-js reports a call that it ends itself as a cancellation: after `grpc-timeout`, or if it rejects the
      // message.
      if (this.#nowMs() + CLOCK_TOLERANCE_MS >= call.deadlineMs) this.#expired += 1;
      else if (call.isBegun) this.#cancelled += 1;
    }
    call.settle(false);
    this.#open.delete(call);
  }
}

/** Passes each message of a stream to its method, until one of them fails. */
function receiveAll(
  stream: ServerReadableStream<Buffer, Buffer>,
  maxBytes: number,
  receive: Receive,
  end: (failed?: GrpcFailure) => void,
): void {
  let isFailed = false;
  // Sent at once, so that the peer knows that the call is established.
  stream.sendMetadata(new Metadata());
  stream.on('data', (message: Buffer) => {
    if (isFailed) return;
    const failed = message.length > maxBytes ? tooLarge(maxBytes) : attempt(() => receive(message));
    if (failed === undefined) return;
    isFailed = true;
    end(failed);
  });
  stream.on('end', () => end());
}

function attempt(run: () => GrpcFailure | undefined): GrpcFailure | undefined {
  try {
    return run();
  } catch {
    return INTERNAL;
  }
}

function responseOf({
  status: code,
  message,
}: GrpcFailure): ServerErrorResponse & Pick<StatusObject, 'code' | 'details'> {
  return { name: 'GrpcFailure', message, code, details: message };
}
