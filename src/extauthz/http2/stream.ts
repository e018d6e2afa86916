/**
 * One stream: its states, its flow control, and the bytes to send (RFC 9113, sections 5.1, 5.2 and 8.1). A subclass
 * interprets the content, so that a call is one object with fields and needs no closures.
 */

import { STREAM_WINDOW } from './bounds.ts';
import type { Connection } from './connection.ts';
import { DATA, END_HEADERS, END_STREAM, FRAME_HEAD_BYTES, HEADERS, writeFrameHead } from './frames.ts';

/** The target of a request, created once for each distinct header block. */
export interface Target {
  /** In bytes; -1 = absent. */
  readonly contentLength: number;
  /** A small number. Streams of one kind share a bound on resets. */
  readonly kind: number;
  /** Opens the stream. The connection has the stream when this returns. */
  open(connection: Connection, id: number): Stream;
}

export abstract class Stream {
  readonly connection: Connection;
  readonly id: number;
  readonly kind: number;
  /** May be negative (RFC 9113, section 6.9.2). */
  sendWindow: number;
  receiveWindow = STREAM_WINDOW;
  /** The rest of the announced content, in bytes; -1 = not announced. */
  contentLeft: number;
  /** Whether the peer has ended its side. */
  remoteEnded = false;
  /** Whether this server has written the end of its side. */
  localEnded = false;
  /** Whether both sides have ended, one of them has reset the stream, or the connection is gone. */
  isOver = false;
  /** The data that waits for the peer's flow control. The first `#offset` bytes are sent. */
  #queue: Buffer[] | undefined;
  #offset = 0;
  /** Whether this side ends after the queue, with these trailers if there are any. */
  #willEnd = false;
  #trailers: Buffer | undefined;

  constructor(connection: Connection, id: number, target: Target) {
    this.connection = connection;
    this.id = id;
    this.kind = target.kind;
    this.contentLeft = target.contentLength;
    this.sendWindow = connection.peer.initialWindow;
  }

  /** Takes content. The bytes stay valid for as long as they are kept. */
  abstract take(bytes: Buffer, start: number, end: number): void;

  /** Called when the peer has ended its side. */
  abstract ended(): void;

  /** Called once for each `connection.whenRead`, after the read is processed. */
  abstract run(): void;

  /** Called when all waiting bytes are written, so that trailers may follow. */
  abstract sent(): void;

  /** Called when the socket has sent, or lost, the bytes before `connection.whenTaken`. */
  abstract settled(isTaken: boolean): void;

  /** Called once when the stream is over. */
  abstract closed(): void;

  /** Called every 250 ms, with the time of the connection's clock. */
  abstract sweep(nowMs: number): void;

  /** Reports whether `bytes` of content can be written at once, in one frame. */
  fits(bytes: number): boolean {
    return (
      bytes <= this.sendWindow &&
      bytes <= this.connection.sendWindow &&
      bytes <= this.connection.peer.maxFrameBytes &&
      this.#queue === undefined &&
      !this.connection.output.isClogged
    );
  }

  get hasQueue(): boolean {
    return this.#queue !== undefined;
  }

  /** Sends a header block. This side ends with it if `isLast`. */
  respond(block: Buffer, isLast: boolean): void {
    if (this.isOver || this.localEnded) return;
    this.#writeHeaders(block, isLast);
    if (isLast) this.#end();
  }

  /** Sends content, now or when the peer permits it. The bytes must not change afterwards. */
  send(bytes: Buffer): void {
    if (this.isOver || this.localEnded || this.#willEnd) return;
    if (this.#queue === undefined) {
      const sent = this.#write(bytes, 0);
      if (sent === bytes.length) {
        this.connection.wantFlush();
        return;
      }
      this.#queue = [bytes];
      this.#offset = sent;
      this.connection.queue(this, bytes.length - sent);
    } else {
      this.#queue.push(bytes);
      this.connection.queue(this, bytes.length);
    }
  }

  /** Ends this side after all bytes, with trailers if there are any. */
  finish(trailers: Buffer | undefined): void {
    if (this.isOver || this.localEnded || this.#willEnd) return;
    if (this.#queue !== undefined) {
      this.#willEnd = true;
      this.#trailers = trailers;
    } else if (trailers !== undefined) {
      this.respond(trailers, true);
    } else {
      const { output } = this.connection;
      const at = output.reserve(FRAME_HEAD_BYTES);
      writeFrameHead(output.bytes, at, 0, DATA, END_STREAM, this.id);
      this.#end();
    }
  }

  /** Writes the bytes that the windows permit. Called by the connection. @returns true if no bytes are left */
  pump(): boolean {
    const queue = this.#queue;
    if (queue === undefined) return true;
    for (let [first] = queue; first !== undefined; [first] = queue) {
      const before = this.#offset;
      this.#offset = this.#write(first, before);
      this.connection.unqueue(this.#offset - before);
      if (this.#offset < first.length) return false;
      queue.shift();
      this.#offset = 0;
    }
    this.#queue = undefined;
    this.sent();
    if (this.#willEnd) {
      this.#willEnd = false;
      this.finish(this.#trailers);
    }
    return true;
  }

  /** Discards the waiting bytes. Called by the connection when the stream is over. */
  dropQueue(): void {
    if (this.#queue === undefined) return;
    const bytes = this.#queue.reduce((sum, { length }) => sum + length, -this.#offset);
    this.#queue = undefined;
    this.connection.unqueue(bytes);
  }

  /** Called after the caller has written the last frame of this side into the connection's output. */
  wroteEnd(): void {
    this.#end();
  }

  #end(): void {
    this.localEnded = true;
    this.connection.wantFlush();
    if (this.remoteEnded) this.connection.forget(this);
  }

  #writeHeaders(block: Buffer, isLast: boolean): void {
    const { output } = this.connection;
    const at = output.reserve(FRAME_HEAD_BYTES + block.length);
    writeFrameHead(output.bytes, at, block.length, HEADERS, END_HEADERS | (isLast ? END_STREAM : 0), this.id);
    output.bytes.set(block, at + FRAME_HEAD_BYTES);
    this.connection.wantFlush();
  }

  /** Writes the DATA frames that the windows and the socket permit. @returns the offset of the first byte that waits */
  #write(bytes: Buffer, from: number): number {
    const { connection } = this;
    const { output, peer } = connection;
    let at = from;
    while (at < bytes.length && !output.isClogged) {
      const count = Math.min(bytes.length - at, this.sendWindow, connection.sendWindow, peer.maxFrameBytes);
      if (count <= 0) return at;
      const to = output.reserve(FRAME_HEAD_BYTES + count);
      writeFrameHead(output.bytes, to, count, DATA, 0, this.id);
      bytes.copy(output.bytes, to + FRAME_HEAD_BYTES, at, at + count);
      this.sendWindow -= count;
      connection.sendWindow -= count;
      connection.dataFrameSent();
      at += count;
    }
    return at;
  }
}
