/**
 * Calls of one message: from the headers to the end of the stream. Node's listeners are shared by all of them, so that a call whose
 * message comes in one piece and whose answer is there at once costs one small object and no closure.
 */

import { constants, type Http2Session, type ServerHttp2Stream } from 'node:http2';
import { EXPIRED, MAX_CALL_MS, NOT_WHOLE, TOO_MUCH_UNFINISHED } from '../grpc/call-stats.ts';
import { MessageParts, readMessage } from '../grpc/messages.ts';
import type { GrpcFailure } from '../grpc/status.ts';
import { readTimeout } from '../grpc/timeout.ts';
import type { Refusable } from '../grpc/unfinished.ts';
import type { Expiring, OpenCalls } from './open-calls.ts';
import { fail, ignore, OK_TRAILERS, openReply } from './replies.ts';

const CALL = Symbol('call');

declare module 'node:http2' {
  interface ServerHttp2Stream {
    [CALL]?: MessageCall;
  }
}

/**
 * - `reading`: its message is not whole;
 * - `waiting`: its method has the message, and has not answered;
 * - `answered`: its answer is with Node, which sends it as the peer's flow control and the socket allow;
 * - `delivered`: the socket has the answer;
 * - `over`: it failed, was cancelled, or its peer is gone.
 */
type CallState = 'reading' | 'waiting' | 'answered' | 'delivered' | 'over';

export abstract class MessageCall implements Expiring, Refusable {
  readonly deadlineMs: number;
  protected readonly stream: ServerHttp2Stream;
  protected readonly calls: OpenCalls;
  protected state: CallState = 'reading';
  readonly #maxBytes: number;
  #parts: MessageParts | undefined;
  /** Known while there are parts: a stream forgets its session when it is destroyed. */
  #session: Http2Session | undefined;

  /** @param timeout the header `grpc-timeout` */
  constructor(stream: ServerHttp2Stream, calls: OpenCalls, maxBytes: number, timeout: string | undefined) {
    this.stream = stream;
    this.calls = calls;
    this.#maxBytes = maxBytes;
    const timeoutMs = readTimeout(timeout);
    this.deadlineMs = calls.nowMs() + (timeoutMs === undefined || timeoutMs > MAX_CALL_MS ? MAX_CALL_MS : timeoutMs);
  }

  /** Takes the whole message. Called once. */
  protected abstract begin(message: Buffer): void;

  /** The call is over and its answer was not delivered. Called once at most. */
  protected abstract lost(): void;

  /** Begins to read, unless the peer has reset the stream already: it may do so at any time, and that is no error of this server. */
  start(): void {
    const { stream } = this;
    stream.on('error', ignore);
    if (stream.destroyed || stream.closed) return;
    stream[CALL] = this;
    this.calls.add(this);
    stream.on('data', onData);
    stream.on('end', onEnd);
  }

  get isGone(): boolean {
    return this.stream.destroyed;
  }

  take(chunk: Buffer): void {
    const { stream } = this;
    // A stream that was reset in the same breath is not decided about.
    if (this.state !== 'reading' || stream.closed) return;
    const parts = this.#parts;
    const read = parts === undefined ? readMessage(chunk, this.#maxBytes) : parts.add(chunk);
    switch (read.kind) {
      case 'message':
        this.state = 'waiting';
        if (parts !== undefined) this.#dropParts();
        this.begin(read.message);
        if (parts === undefined && this.state === 'waiting') stream.on('close', onClose);
        break;
      case 'failure':
        this.fail(read);
        break;
      case 'more':
        this.#keep(parts, chunk);
        break;
      default:
        read satisfies never;
    }
  }

  /** The peer has sent all that it will send. */
  ended(): void {
    if (this.state === 'reading') this.fail(NOT_WHOLE);
  }

  /**
   * The stream is gone. A call that has to wait hears of it at once, and every other from the next sweep, because one listener more is
   * felt by a call that is answered at once.
   */
  closed(): void {
    this.calls.remove(this);
    if (this.state === 'delivered' || this.state === 'over') return;
    this.calls.cancelled += 1;
    this.#giveUp();
  }

  refuse(): void {
    this.fail(TOO_MUCH_UNFINISHED);
  }

  expire(): void {
    switch (this.state) {
      case 'reading':
      case 'waiting':
        this.calls.expired += 1;
        this.fail(EXPIRED);
        break;
      case 'answered':
        this.calls.expired += 1;
        this.#giveUp();
        this.stream.close(constants.NGHTTP2_CANCEL);
        break;
      case 'delivered':
      case 'over':
        // The peer has its answer, and does not close its side.
        this.calls.remove(this);
        this.stream.close(constants.NGHTTP2_CANCEL);
        break;
      default:
        this.state satisfies never;
    }
  }

  /** The socket has all messages; only the trailers follow. */
  sent(): void {
    if (this.state === 'answered') {
      this.state = 'delivered';
      if (this.stream.readableEnded) this.calls.remove(this);
    }
    this.stream.sendTrailers(OK_TRAILERS);
  }

  /** Sends the headers of the answer. */
  protected openReply(): void {
    this.stream.on('wantTrailers', onWantTrailers);
    openReply(this.stream);
  }

  /** Ends the call without an answer. */
  protected fail(why: GrpcFailure): void {
    this.#giveUp();
    fail(this.stream, why);
  }

  #giveUp(): void {
    if (this.#parts !== undefined) this.#dropParts();
    this.state = 'over';
    this.lost();
  }

  #keep(parts: MessageParts | undefined, chunk: Buffer): void {
    let kept = parts;
    if (kept === undefined) {
      kept = new MessageParts(this.#maxBytes);
      kept.add(chunk);
      this.#parts = kept;
      this.#session = this.stream.session;
      this.stream.on('close', onClose);
    }
    if (this.#session !== undefined) this.calls.unfinished.set(this.#session, this, kept.heldBytes);
  }

  #dropParts(): void {
    this.#parts?.drop();
    this.#parts = undefined;
    if (this.#session !== undefined) this.calls.unfinished.set(this.#session, this, 0);
    this.#session = undefined;
  }
}

function onData(this: ServerHttp2Stream, chunk: Buffer): void {
  this[CALL]?.take(chunk);
}

function onEnd(this: ServerHttp2Stream): void {
  this[CALL]?.ended();
}

function onWantTrailers(this: ServerHttp2Stream): void {
  this[CALL]?.sent();
}

function onClose(this: ServerHttp2Stream): void {
  this[CALL]?.closed();
}
