/**
 * The bytes that a connection sends. Frames are written into one buffer, and one write sends everything that one read
 * caused.
 *
 * A plain socket usually passes a write to the kernel at once. Its `writableLength` is then 0, and the buffer is free.
 * Otherwise, the socket still reads from the buffer, and the connection continues with another one.
 */

import type { Socket } from 'node:net';
import { MAX_BACKLOG_BYTES } from './bounds.ts';

const INITIAL_BYTES = 16 * 1024;
/** The size beyond which a buffer is not kept. */
const KEPT_BYTES = 256 * 1024;

export class Output {
  /** Valid up to `length`. `reserve` may replace it. */
  bytes: Buffer = Buffer.allocUnsafeSlow(INITIAL_BYTES);
  length = 0;
  readonly #socket: Socket;
  /** At least the socket's own mark, so that beyond it the socket's `drain` event follows. */
  readonly #maxBacklog: number;
  /** Whether the socket may still read from the buffer. */
  #lent: Buffer | undefined;
  #spare: Buffer | undefined;

  constructor(socket: Socket) {
    this.#socket = socket;
    this.#maxBacklog = Math.max(MAX_BACKLOG_BYTES, socket.writableHighWaterMark);
  }

  /** Reserves `count` bytes. The caller writes them at the returned offset of `bytes`. */
  reserve(count: number): number {
    const at = this.length;
    const length = at + count;
    if (length > this.bytes.length) {
      const grown = Buffer.allocUnsafeSlow(Math.max(2 * this.bytes.length, length));
      this.bytes.copy(grown, 0, 0, at);
      this.bytes = grown;
    }
    this.length = length;
    return at;
  }

  append(bytes: Buffer): void {
    const at = this.reserve(bytes.length);
    this.bytes.set(bytes, at);
  }

  /** Whether the kernel has every byte that was flushed. */
  get isTaken(): boolean {
    return this.#socket.writableLength === 0;
  }

  /**
   * Whether the bytes that wait for the socket exceed the bound, so that the caller must not add bytes that can wait.
   */
  get isClogged(): boolean {
    return this.length + this.#socket.writableLength > this.#maxBacklog;
  }

  /**
   * Passes everything to the socket. @returns false if the socket holds more than its mark: its `drain` event follows
   */
  flush(): boolean {
    const { length, bytes } = this;
    const socket = this.#socket;
    if (length === 0) return !socket.writableNeedDrain;
    this.length = 0;
    if (!socket.writable) return true;
    if (socket.writableLength === 0 && this.#lent !== undefined) {
      this.#spare = this.#lent;
      this.#lent = undefined;
    }
    socket.write(bytes.subarray(0, length));
    if (socket.writableLength === 0) {
      if (bytes.length > KEPT_BYTES) this.bytes = Buffer.allocUnsafeSlow(INITIAL_BYTES);
      return true;
    }
    this.#lent = bytes.length > KEPT_BYTES ? undefined : bytes;
    this.bytes = this.#spare ?? Buffer.allocUnsafeSlow(INITIAL_BYTES);
    this.#spare = undefined;
    return !socket.writableNeedDrain;
  }
}
