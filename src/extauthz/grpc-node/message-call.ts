/**
 * Calls of one message: from the headers to the end of the stream. A method begins when its peer has ended its side after exactly one
 * message. Node's listeners are shared by all of them, so that a call whose
 * message comes in one piece and whose answer is there at once costs one small object and no closure.
 */

import { constants, type Http2Session, type ServerHttp2Stream } from 'node:http2';
import { EXPIRED, MAX_CALL_MS, NOT_WHOLE, TOO_MUCH_UNFINISHED, TWO_MESSAGES } from '../grpc/call-stats.ts';
import { MessageParts, PREFIX_BYTES, readMessage } from '../grpc/messages.ts';
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
 * - `unended`: its message is whole, and Node has not reported the end of its peer's side;
 * - `waiting`: its method has the message, and has not answered;
 * - `answered`: its answer is with Node, which sends it as the peer's flow control and the socket allow;
 * - `delivered`: the socket has the answer;
 * - `over`: it failed, was cancelled, or its peer is gone.
 */
type CallState = 'reading' | 'unended' | 'waiting' | 'answered' | 'delivered' | 'over';

export abstract class MessageCall implements Expiring, Refusable {
  readonly deadlineMs: number;
  protected readonly stream: ServerHttp2Stream;
  protected readonly calls: OpenCalls;
  protected state: CallState = 'reading';
  readonly #maxBytes: number;
  #parts: MessageParts | undefined;
  #message: Buffer | undefined;
  #hearsClose = false;
  /** Known while there are parts or a message: a stream forgets its session when it is destroyed. */
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
    if (stream.closed) return;
    if (this.state === 'unended') this.fail(TWO_MESSAGES);
    if (this.state !== 'reading') return;
    const parts = this.#parts;
    const read = parts === undefined ? readMessage(chunk, this.#maxBytes) : parts.add(chunk);
    switch (read.kind) {
      case 'message': {
        const consumed = parts === undefined ? PREFIX_BYTES + read.message.length : parts.consumed;
        if (parts !== undefined) this.#dropParts();
        if (consumed < chunk.length) this.fail(TWO_MESSAGES);
        else this.#wait(read.message);
        break;
      }
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
    const message = this.#message;
    if (this.state !== 'unended' || message === undefined) return;
    this.#dropMessage();
    if (this.stream.closed) return;
    this.state = 'waiting';
    this.begin(message);
    if (!this.#hearsClose) this.#hearCloseWhileWaiting();
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
      case 'unended':
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
    if (this.#message !== undefined) this.#dropMessage();
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
      this.#hearsClose = true;
      this.stream.on('close', onClose);
    }
    if (this.#session !== undefined) this.calls.unfinished.set(this.#session, this, kept.heldBytes);
  }

  #hearCloseWhileWaiting(): void {
    if (this.state === 'waiting') this.stream.on('close', onClose);
  }

  /** Keeps the message until its peer has ended its side. Its memory counts like that of an unfinished one. */
  #wait(message: Buffer): void {
    this.state = 'unended';
    this.#message = message;
    this.#session = this.stream.session;
    if (this.#session !== undefined) this.calls.unfinished.set(this.#session, this, message.length);
  }

  #dropMessage(): void {
    this.#message = undefined;
    if (this.#session !== undefined) this.calls.unfinished.set(this.#session, this, 0);
    this.#session = undefined;
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
