/** Calls of one message that are answered with any number, for as long as they are open. */

import type { ServerHttp2Stream } from 'node:http2';
import { INTERNAL } from '../grpc/call-stats.ts';
import { frame } from '../grpc/messages.ts';
import type { OpenCall, ServerStreamMethod } from '../grpc/methods.ts';
import type { GrpcFailure } from '../grpc/status.ts';
import { MessageCall } from './message-call.ts';
import type { OpenCalls } from './open-calls.ts';

export class ServedStream extends MessageCall implements OpenCall {
  readonly #open: ServerStreamMethod;

  constructor(
    stream: ServerHttp2Stream,
    calls: OpenCalls,
    maxBytes: number,
    timeout: string | undefined,
    open: ServerStreamMethod,
  ) {
    super(stream, calls, maxBytes, timeout);
    this.#open = open;
  }

  send(message: Buffer): void {
    if (this.#begun()) this.stream.write(frame(message));
  }

  end(): void {
    if (this.#begun()) this.stream.end();
  }

  onEnd(gone: () => void): void {
    this.stream.once('close', gone);
  }

  protected override begin(message: Buffer): void {
    // From here on it may last as long as its peer likes.
    this.calls.remove(this);
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

  protected override lost(): void {
    // Nothing was granted.
  }

  /** Sends the headers if that was not done; false when nothing more can be sent. */
  #begun(): boolean {
    const { stream } = this;
    if (stream.destroyed || stream.closed || stream.writableEnded) return false;
    if (!stream.headersSent) this.openReply();
    return true;
  }
}
