/**
 * Unary calls, and what their methods are told of cancellation.
 *
 * An answer counts as delivered when Node has handed its last byte to the socket. If the peer resets the stream before that, the
 * connection breaks, or the deadline passes, whatever the answer granted is released. More cannot be seen from here: nghttp2 ignores the
 * RST_STREAM of a stream that both sides have ended, and the kernel does not tell whether the peer read what it was sent. A reservation
 * made for such an answer ends by its own lifetime.
 */

import type { ServerHttp2Stream } from 'node:http2';
import { INTERNAL } from '../grpc/call-stats.ts';
import { frame } from '../grpc/messages.ts';
import type { Releaser, UnaryAnswer, UnaryCall, UnaryMethod } from '../grpc/methods.ts';
import { MessageCall } from './message-call.ts';
import type { OpenCalls } from './open-calls.ts';

export class ServedUnaryCall extends MessageCall implements UnaryCall {
  readonly #answer: UnaryMethod;
  #listener: (() => void) | undefined;
  #releaser: Releaser | undefined;
  #reservation = '';

  constructor(
    stream: ServerHttp2Stream,
    calls: OpenCalls,
    maxBytes: number,
    timeout: string | undefined,
    answer: UnaryMethod,
  ) {
    super(stream, calls, maxBytes, timeout);
    this.#answer = answer;
  }

  onCancel(listener: (() => void) | undefined): void {
    if (this.state === 'over') listener?.();
    else this.#listener = listener;
  }

  releaseUnlessDelivered(releaser: Releaser, reservation: string): void {
    if (this.state === 'over') {
      releaser.release(reservation);
      return;
    }
    this.#releaser = releaser;
    this.#reservation = reservation;
  }

  protected override begin(message: Buffer): void {
    try {
      const result = this.#answer(message, this);
      if (result instanceof Promise) {
        result.then(
          (answer) => this.#reply(answer),
          () => this.#reply(INTERNAL),
        );
      } else {
        this.#reply(result);
      }
    } catch {
      this.#reply(INTERNAL);
    }
  }

  protected override lost(): void {
    const [listener, releaser] = [this.#listener, this.#releaser];
    this.#listener = undefined;
    this.#releaser = undefined;
    releaser?.release(this.#reservation);
    listener?.();
  }

  #reply(answer: UnaryAnswer): void {
    const { stream } = this;
    // A stream that is closed but not gone yet is given up when it is.
    if (this.state !== 'waiting' || stream.destroyed || stream.closed) return;
    if (!(answer instanceof Uint8Array)) {
      this.fail(answer);
      return;
    }
    this.state = 'answered';
    this.openReply();
    stream.end(frame(answer));
  }
}
