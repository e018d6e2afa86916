/** Calls with any number of messages and one answer. */

import type { Connection } from '../http2/connection.ts';
import { CANCEL } from '../http2/frames.ts';
import { Stream } from '../http2/stream.ts';
import { failureHead, OK_HEAD, OK_TRAILERS, trailersOf } from './answer-bytes.ts';
import {
  FAILED_LINGER_MS,
  INTERNAL,
  LINGER_MS,
  MAX_CALL_MS,
  NOT_WHOLE,
  TOO_MUCH_UNFINISHED,
  TOO_SLOW,
} from './call-stats.ts';
import { frame, MessageParts } from './messages.ts';
import type { ClientStreamMethod, IncomingCall, Receive } from './methods.ts';
import type { ServedCalls } from './served-calls.ts';
import type { GrpcFailure } from './status.ts';
import type { CallTarget } from './targets.ts';
import type { Refusable } from './unfinished.ts';

export class ServedIncomingCall extends Stream implements IncomingCall, Refusable {
  #deadlineMs = Number.POSITIVE_INFINITY;
  readonly #calls: ServedCalls;
  readonly #answer: Buffer;
  readonly #parts: MessageParts;
  #receive: Receive | undefined;
  #onGone: (() => void) | undefined;

  constructor(connection: Connection, id: number, target: CallTarget, answer: Buffer) {
    super(connection, id, target);
    this.#calls = target.calls;
    this.#answer = answer;
    this.#parts = new MessageParts(target.maxBytes);
  }

  start(begin: ClientStreamMethod): this {
    const receive = begin(this);
    if (typeof receive === 'function') {
      this.#receive = receive;
      // Sent at once, so that the peer knows that the call is established.
      this.respond(OK_HEAD, false);
    } else {
      this.respond(failureHead(receive), true);
      this.connection.stopPeer(this);
    }
    return this;
  }

  end(): void {
    this.#end(undefined);
  }

  onEnd(gone: () => void): void {
    this.#onGone = gone;
  }

  refuse(): void {
    this.#end(TOO_MUCH_UNFINISHED);
  }

  override take(bytes: Buffer, start: number, end: number): void {
    const receive = this.#receive;
    if (receive === undefined) return;
    let whole = false;
    let failed: GrpcFailure | undefined;
    try {
      failed = this.#parts.split(bytes.subarray(start, end), (message) => {
        whole = true;
        return receive(message);
      });
    } catch {
      failed = INTERNAL;
    }
    if (failed !== undefined) this.#end(failed);
    else this.#watch(whole);
  }

  override ended(): void {
    this.#end(this.#parts.empty ? undefined : NOT_WHOLE);
  }

  override run(): void {
    // The method takes each message when it arrives.
  }

  override sent(): void {
    // Nothing depends on the answer.
  }

  override settled(): void {
    // Nothing depends on the answer.
  }

  override closed(): void {
    this.#drop();
    this.#onGone?.();
    this.#onGone = undefined;
  }

  override sweep(nowMs: number): void {
    if (nowMs < this.#deadlineMs) return;
    if (this.localEnded || this.hasQueue) {
      // The peer has its answer, or does not read it, and does not end its side.
      this.connection.reset(this, CANCEL);
      return;
    }
    this.#calls.expired += 1;
    this.#end(TOO_SLOW);
  }

  /** @param whole whether a message became complete, so that the incomplete one began with this chunk */
  #watch(whole: boolean): void {
    this.#hold(this.#parts.heldBytes);
    if (this.isOver || this.localEnded || this.#receive === undefined) return;
    if (this.#parts.empty) this.#deadlineMs = Number.POSITIVE_INFINITY;
    else if (whole || this.#deadlineMs === Number.POSITIVE_INFINITY)
      this.#deadlineMs = this.connection.nowMs + MAX_CALL_MS;
  }

  #hold(bytes: number): void {
    this.#calls.unfinished.set(this.connection, this, bytes);
  }

  /** Stops reading messages. */
  #drop(): void {
    this.#receive = undefined;
    this.#parts.drop();
    this.#hold(0);
  }

  #end(failed: GrpcFailure | undefined): void {
    if (failed !== undefined) this.#drop();
    if (this.isOver || this.localEnded || this.hasQueue) return;
    // The server cuts a peer that does not end its side after a delay, so that the peer gets the trailers.
    this.#deadlineMs = this.#calls.nowMs() + (failed === undefined ? LINGER_MS : FAILED_LINGER_MS);
    if (failed === undefined) this.send(frame(this.#answer));
    this.finish(failed === undefined ? OK_TRAILERS : trailersOf(failed));
  }
}
