/**
 * The streams of one connection that have more to send than the peer's flow control or the socket takes (RFC 9113,
 * section 5.2).
 */

import type { Connection } from './connection.ts';
import type { Stream } from './stream.ts';

export class WaitingStreams {
  readonly #streams = new Set<Stream>();
  #bytes = 0;

  /** The bytes of waiting answers. */
  get bytes(): number {
    return this.#bytes;
  }

  get size(): number {
    return this.#streams.size;
  }

  /** Records that a stream has `bytes` more to send. */
  add(stream: Stream, bytes: number): void {
    this.#bytes += bytes;
    this.#streams.add(stream);
  }

  /** Records that `bytes` were sent or discarded. */
  subtract(bytes: number): void {
    this.#bytes -= bytes;
  }

  delete(stream: Stream): void {
    this.#streams.delete(stream);
  }

  /**
   * Runs the streams. A stream that cannot send everything moves to the end of the queue.
   * @returns true if only the socket's bound stopped them
   */
  pump(connection: Connection): boolean {
    const { output } = connection;
    for (const stream of [...this.#streams]) {
      if (connection.sendWindow <= 0) return false;
      if (output.isClogged) return true;
      this.#streams.delete(stream);
      if (!(stream.isOver || stream.pump() || stream.isOver)) this.#streams.add(stream);
    }
    return output.isClogged && this.#streams.size > 0;
  }
}
