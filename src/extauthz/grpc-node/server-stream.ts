/** Calls of one message that are answered with any number, for as long as they are open. */

import type { ServerHttp2Stream } from 'node:http2';
import { INTERNAL, MessageCall } from './message-call.ts';
import { frame } from './messages.ts';
import type { OpenCalls } from './open-calls.ts';
import type { GrpcFailure } from './status.ts';

/** What stays of a call that gets more than one message. */
export interface OpenCall {
  send(message: Buffer): void;
  /** The call ends well. */
  end(): void;
  /** `gone` is called once, however the call ends. */
  onEnd(gone: () => void): void;
}

/** Takes the one message; a failure ends the call. A thrown error ends it as `internal`. */
export type ServerStreamMethod = (message: Buffer, call: OpenCall) => GrpcFailure | undefined;

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
