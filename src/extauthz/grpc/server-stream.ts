/** Calls of one message with any number of answers. */

import type { Connection } from '../http2/connection.ts';
import { OK_HEAD, OK_TRAILERS } from './answer-bytes.ts';
import { INTERNAL, LINGER_MS } from './call-stats.ts';
import { MessageCall } from './message-call.ts';
import { frame } from './messages.ts';
import type { OpenCall, ServerStreamMethod } from './methods.ts';
import type { GrpcFailure } from './status.ts';
import type { CallTarget } from './targets.ts';

export class ServedStream extends MessageCall implements OpenCall {
  readonly #open: ServerStreamMethod;
  #onGone: (() => void) | undefined;
  #hasHead = false;

  constructor(connection: Connection, id: number, target: CallTarget, open: ServerStreamMethod) {
    super(connection, id, target);
    this.#open = open;
  }

  override send(message: Buffer): void {
    if (this.#begun()) super.send(frame(message));
  }

  end(): void {
    if (!this.#begun()) return;
    this.deadlineMs = this.calls.nowMs() + LINGER_MS;
    this.finish(OK_TRAILERS);
  }

  onEnd(gone: () => void): void {
    this.#onGone = gone;
  }

  protected override begin(message: Buffer): void {
    this.endCount();
    this.deadlineMs = Number.POSITIVE_INFINITY;
    let refused: GrpcFailure | undefined;
    try {
      refused = this.#open(message, this);
    } catch {
      refused = INTERNAL;
    }
    if (refused !== undefined) {
      this.fail(refused);
      return;
    }
    this.state = 'delivered';
    this.#begun();
  }

  protected override dependsOnDelivery(): boolean {
    return false;
  }

  protected override lost(): void {
    // A stream has no reservation.
  }

  protected override gone(): void {
    this.#onGone?.();
    this.#onGone = undefined;
  }

  /** Sends the headers if they were not sent. Returns false if the call can send nothing more. */
  #begun(): boolean {
    if (this.isOver || this.localEnded) return false;
    if (!this.#hasHead) {
      this.#hasHead = true;
      this.respond(OK_HEAD, false);
    }
    return true;
  }
}
