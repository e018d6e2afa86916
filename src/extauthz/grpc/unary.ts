/**
 * Unary calls, and the release of their reservations.
 *
 * An answer counts as delivered when the socket has passed its last byte to the kernel. If before that the peer resets
 * the stream, the connection breaks, or the deadline passes, the server releases the reservation. The kernel does not
 * report whether the peer read the answer, so a reservation of an unread answer ends with its own lifetime.
 */

import type { Connection } from '../http2/connection.ts';
import { OK_HEAD, OK_TRAILERS, writeAnswer } from './answer-bytes.ts';
import { INTERNAL } from './call-stats.ts';
import { MessageCall } from './message-call.ts';
import { frame, PREFIX_BYTES } from './messages.ts';
import type { Releaser, UnaryAnswer, UnaryCall, UnaryMethod } from './methods.ts';
import type { CallTarget } from './targets.ts';

export class ServedUnaryCall extends MessageCall implements UnaryCall {
  readonly #answer: UnaryMethod;
  #listener: (() => void) | undefined;
  #releaser: Releaser | undefined;
  #reservation = '';

  constructor(connection: Connection, id: number, target: CallTarget, answer: UnaryMethod) {
    super(connection, id, target);
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

  protected override dependsOnDelivery(): boolean {
    return this.#releaser !== undefined;
  }

  protected override lost(): void {
    const [listener, releaser] = [this.#listener, this.#releaser];
    this.#listener = undefined;
    this.#releaser = undefined;
    releaser?.release(this.#reservation);
    listener?.();
  }

  protected override gone(): void {
    // The answer was delivered or lost before.
  }

  #reply(answer: UnaryAnswer): void {
    if (this.state !== 'waiting') return;
    if (!(answer instanceof Uint8Array)) {
      this.fail(answer);
      return;
    }
    if (this.fits(PREFIX_BYTES + answer.length)) {
      writeAnswer(this, answer);
      this.handOver();
      this.wroteEnd();
      return;
    }
    this.state = 'answered';
    this.respond(OK_HEAD, false);
    this.send(frame(answer));
    if (!(this.hasQueue || this.isOver)) this.handOver();
    this.finish(OK_TRAILERS);
  }
}
