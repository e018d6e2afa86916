/** Calls that bring messages for as long as their peer likes, and are answered once. */

import { constants, type OutgoingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import {
  FAILED_LINGER_MS,
  INTERNAL,
  LINGER_MS,
  MAX_CALL_MS,
  NOT_WHOLE,
  TOO_MUCH_UNFINISHED,
  TOO_SLOW,
} from '../grpc/call-stats.ts';
import { frame, MessageParts } from '../grpc/messages.ts';
import type { ClientStreamMethod, IncomingCall, Receive } from '../grpc/methods.ts';
import type { GrpcFailure } from '../grpc/status.ts';
import type { Refusable } from '../grpc/unfinished.ts';
import type { Expiring, OpenCalls } from './open-calls.ts';
import { fail, ignore, OK_TRAILERS, openReply, trailersOf } from './replies.ts';

class ServedIncomingCall implements IncomingCall, Expiring, Refusable {
  deadlineMs = Number.POSITIVE_INFINITY;
  readonly #stream: ServerHttp2Stream;
  readonly #calls: OpenCalls;
  readonly #answer: Buffer;
  readonly #session: ServerHttp2Stream['session'];
  readonly #parts: MessageParts;
  #outcome: OutgoingHttpHeaders = OK_TRAILERS;
  /** Nothing more is taken. */
  #failed = false;

  constructor(stream: ServerHttp2Stream, calls: OpenCalls, maxBytes: number, answer: Buffer) {
    this.#stream = stream;
    this.#calls = calls;
    this.#answer = answer;
    this.#session = stream.session;
    this.#parts = new MessageParts(maxBytes);
  }

  start(begin: ClientStreamMethod): void {
    const stream = this.#stream;
    const receive = begin(this);
    if (typeof receive !== 'function') {
      fail(stream, receive);
      return;
    }
    stream.on('wantTrailers', () => stream.sendTrailers(this.#outcome));
    // At once, so that the peer knows the call to be established.
    openReply(stream);
    stream.on('data', (chunk: Buffer) => this.#take(chunk, receive));
    stream.on('end', () => this.#end(this.#parts.empty ? undefined : NOT_WHOLE));
    stream.on('close', () => this.closed());
  }

  end(): void {
    this.#end(undefined);
  }

  onEnd(gone: () => void): void {
    this.#stream.once('close', gone);
  }

  refuse(): void {
    this.#end(TOO_MUCH_UNFINISHED);
  }

  get isGone(): boolean {
    return this.#stream.destroyed;
  }

  expire(): void {
    if (!this.#stream.writableEnded) {
      this.#calls.expired += 1;
      this.#end(TOO_SLOW);
      return;
    }
    // The peer has its answer, and does not close its side.
    this.closed();
    this.#stream.close(constants.NGHTTP2_CANCEL);
  }

  closed(): void {
    this.#failed = true;
    this.#parts.drop();
    this.#hold(0);
    this.#calls.remove(this);
  }

  #take(chunk: Buffer, receive: Receive): void {
    if (this.#failed) return;
    let whole = false;
    let failed: GrpcFailure | undefined;
    try {
      failed = this.#parts.split(chunk, (message) => {
        whole = true;
        return receive(message);
      });
    } catch {
      failed = INTERNAL;
    }
    if (failed !== undefined) this.#end(failed);
    else this.#watch(whole);
  }

  /** @param whole a message became whole, so that what is kept now began with this chunk */
  #watch(whole: boolean): void {
    const stream = this.#stream;
    this.#hold(this.#parts.heldBytes);
    if (stream.writableEnded) return;
    if (this.#parts.empty) {
      this.deadlineMs = Number.POSITIVE_INFINITY;
      this.#calls.remove(this);
    } else if (whole || this.deadlineMs === Number.POSITIVE_INFINITY) {
      this.deadlineMs = this.#calls.nowMs() + MAX_CALL_MS;
      this.#calls.add(this);
    }
  }

  #hold(bytes: number): void {
    if (this.#session !== undefined) this.#calls.unfinished.set(this.#session, this, bytes);
  }

  #end(failed: GrpcFailure | undefined): void {
    if (failed !== undefined) {
      // What the peer still sends is thrown away.
      this.#failed = true;
      this.#parts.drop();
      this.#hold(0);
    }
    const stream = this.#stream;
    if (stream.destroyed || stream.closed || stream.writableEnded) return;
    // A peer that does not close its side is cut when it has had time to: not at once, because it is to get the trailers.
    this.deadlineMs = this.#calls.nowMs() + (failed === undefined ? LINGER_MS : FAILED_LINGER_MS);
    this.#calls.add(this);
    if (failed === undefined) {
      stream.end(frame(this.#answer));
    } else {
      this.#outcome = trailersOf(failed);
      stream.end();
    }
  }
}

/** Serves one call. */
export function serveClientStream(
  stream: ServerHttp2Stream,
  calls: OpenCalls,
  maxBytes: number,
  begin: ClientStreamMethod,
  answer: Buffer,
): void {
  stream.on('error', ignore);
  if (stream.destroyed || stream.closed) return;
  new ServedIncomingCall(stream, calls, maxBytes, answer).start(begin);
}
