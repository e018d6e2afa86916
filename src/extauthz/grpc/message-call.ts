/**
 * Calls of one message, from the headers to the end of the stream. A method begins when its peer has ended its side
 * after exactly one message. Before that, a second message may follow, and a call with two messages is malformed.
 */

import type { Connection } from '../http2/connection.ts';
import { CANCEL } from '../http2/frames.ts';
import { Stream } from '../http2/stream.ts';
import { failureHead } from './answer-bytes.ts';
import { DEADLINE_PASSED, NOT_WHOLE, TOO_MUCH_UNFINISHED, TWO_MESSAGES } from './call-stats.ts';
import { MessageParts, PREFIX_BYTES } from './messages.ts';
import type { ServedCalls } from './served-calls.ts';
import type { GrpcFailure } from './status.ts';
import type { CallTarget } from './targets.ts';
import type { Refusable } from './unfinished.ts';

/**
 * The states of a call:
 * - `reading`: its message is incomplete;
 * - `ready`: its message is complete, and the connection is still processing the read that brought it, or the end of
 *   the peer's side;
 * - `unended`: its message is complete, and its peer has not ended its side;
 * - `waiting`: its method has the message, and has not answered;
 * - `answered`: a part of its answer waits for the peer's flow control;
 * - `handed`: its answer is with the socket, and something depends on its delivery;
 * - `delivered`: the socket has sent the answer, or nothing depends on it;
 * - `over`: it failed, was cancelled, or its peer is gone.
 */
type CallState = 'reading' | 'ready' | 'unended' | 'waiting' | 'answered' | 'handed' | 'delivered' | 'over';

export abstract class MessageCall extends Stream implements Refusable {
  deadlineMs: number;
  protected readonly calls: ServedCalls;
  protected state: CallState = 'reading';
  readonly #maxBytes: number;
  #parts: MessageParts | undefined;
  #message: Buffer | undefined;
  #isCounted = true;

  constructor(connection: Connection, id: number, target: CallTarget) {
    super(connection, id, target);
    this.calls = target.calls;
    this.#maxBytes = target.maxBytes;
    this.deadlineMs = connection.nowMs + target.timeoutMs;
    target.calls.open += 1;
  }

  /** Takes the complete message. Called once. */
  protected abstract begin(message: Buffer): void;

  /** Called at most once, when the call ends without delivery of its answer. */
  protected abstract lost(): void;

  /** Called once, after everything else, when the stream is over. */
  protected abstract gone(): void;

  override take(bytes: Buffer, start: number, end: number): void {
    if (this.state !== 'reading') {
      if (this.state === 'ready' || this.state === 'unended') this.fail(TWO_MESSAGES);
      return;
    }
    if (this.#parts !== undefined) {
      this.#add(this.#parts, bytes.subarray(start, end));
      return;
    }
    // A message in one frame is read in place.
    const length = end - start < PREFIX_BYTES || bytes[start] !== 0 ? -1 : bytes.readUInt32BE(start + 1);
    if (length >= 0 && length <= this.#maxBytes && start + PREFIX_BYTES + length <= end) {
      if (start + PREFIX_BYTES + length < end) this.fail(TWO_MESSAGES);
      else this.#complete(bytes.subarray(start + PREFIX_BYTES, start + PREFIX_BYTES + length));
      return;
    }
    this.#parts = new MessageParts(this.#maxBytes);
    this.#add(this.#parts, bytes.subarray(start, end));
  }

  override ended(): void {
    if (this.state === 'reading') this.fail(NOT_WHOLE);
    else if (this.state === 'unended') {
      this.calls.unfinished.set(this.connection, this, 0);
      this.state = 'ready';
      this.connection.whenRead(this);
    }
  }

  override run(): void {
    const message = this.#message;
    if (this.state !== 'ready' || message === undefined) return;
    if (!this.remoteEnded) {
      this.#wait(message);
      return;
    }
    this.#message = undefined;
    this.state = 'waiting';
    this.begin(message);
  }

  override sent(): void {
    if (this.state === 'answered') this.handOver();
  }

  override settled(isTaken: boolean): void {
    if (this.state !== 'handed') return;
    if (isTaken) {
      this.state = 'delivered';
      return;
    }
    this.calls.cancelled += 1;
    this.#giveUp();
  }

  override closed(): void {
    this.endCount();
    const { state } = this;
    // An answer with the socket counts as delivered or lost when the socket has settled it.
    const isDone = state === 'delivered' || state === 'over' || (state === 'handed' && this.remoteEnded);
    if (!isDone) {
      this.calls.cancelled += 1;
      this.#giveUp();
    }
    this.gone();
  }

  refuse(): void {
    this.fail(TOO_MUCH_UNFINISHED);
  }

  override sweep(nowMs: number): void {
    if (nowMs < this.deadlineMs) return;
    switch (this.state) {
      case 'reading':
      case 'ready':
      case 'unended':
      case 'waiting':
        this.calls.expired += 1;
        this.fail(DEADLINE_PASSED);
        break;
      case 'answered':
      case 'handed':
        this.calls.expired += 1;
        this.#giveUp();
        this.connection.reset(this, CANCEL);
        break;
      case 'delivered':
      case 'over':
        // The peer has its answer, and does not end its side.
        this.connection.reset(this, CANCEL);
        break;
      default:
        this.state satisfies never;
    }
  }

  /** Called when the whole answer is written. */
  protected handOver(): void {
    if (this.dependsOnDelivery()) {
      this.state = 'handed';
      this.connection.whenTaken(this);
    } else {
      this.state = 'delivered';
    }
  }

  protected abstract dependsOnDelivery(): boolean;

  /** Ends the call without an answer. */
  protected fail(why: GrpcFailure): void {
    this.#giveUp();
    this.respond(failureHead(why), true);
    if (!(this.isOver || this.remoteEnded)) this.connection.stopPeer(this);
  }

  /** Removes the deadline: the peer decides how long the call lasts. */
  protected endCount(): void {
    if (!this.#isCounted) return;
    this.#isCounted = false;
    this.calls.open -= 1;
  }

  #giveUp(): void {
    if (this.#parts !== undefined) this.#dropParts();
    if (this.state === 'unended') this.calls.unfinished.set(this.connection, this, 0);
    this.#message = undefined;
    this.state = 'over';
    this.lost();
  }

  /** Keeps the message after the read that brought it. Its memory counts as that of an unfinished message. */
  #wait(message: Buffer): void {
    this.state = 'unended';
    this.#message = Buffer.from(message);
    this.calls.unfinished.set(this.connection, this, message.length);
  }

  #complete(message: Buffer): void {
    this.state = 'ready';
    this.#message = message;
    this.connection.whenRead(this);
  }

  #add(parts: MessageParts, chunk: Buffer): void {
    const read = parts.add(chunk);
    switch (read.kind) {
      case 'message':
        this.#dropParts();
        if (parts.consumed < chunk.length) this.fail(TWO_MESSAGES);
        else this.#complete(read.message);
        break;
      case 'failure':
        this.fail(read);
        break;
      case 'more':
        this.calls.unfinished.set(this.connection, this, parts.heldBytes);
        break;
      default:
        read satisfies never;
    }
  }

  #dropParts(): void {
    this.#parts?.drop();
    this.#parts = undefined;
    this.calls.unfinished.set(this.connection, this, 0);
  }
}
