/** Joins a header block from HEADERS and CONTINUATION (RFC 9113, section 4.3), and reads it. */

import { MAX_BLOCK_BYTES, MAX_BLOCK_FRAMES } from './bounds.ts';
import { COMPRESSION_ERROR, ENHANCE_YOUR_CALM, PROTOCOL_ERROR } from './frames.ts';
import type { HeaderMemo } from './header-memo.ts';
import { HeaderDecoder } from './hpack-decode.ts';
import { areTrailers, type RequestHead, readRequestHead } from './request-head.ts';
import type { Target } from './stream.ts';

/**
 * Reads a request's target. The result must depend on the head only, because it is used for every request with the same
 * head.
 */
export type ReadTarget = (head: RequestHead) => Target;

/** The content of a block: a request, its trailers, or the error code with which the stream ends. */
type BlockMeaning = Target | number;

export class HeaderBlocks {
  readonly #decoder = new HeaderDecoder();
  readonly #memo: HeaderMemo<Target>;
  readonly #readTarget: ReadTarget;
  /** The stream with an incomplete block; 0 = none. */
  openStream = 0;
  #parts: Buffer[] = [];
  #bytes = 0;

  constructor(memo: HeaderMemo<Target>, readTarget: ReadTarget) {
    this.#memo = memo;
    this.#readTarget = readTarget;
  }

  /** Called when the peer has acknowledged SETTINGS_HEADER_TABLE_SIZE 0. */
  closeTable(): void {
    this.#decoder.table.close();
  }

  /** Keeps the first or the next part of a block. @returns an error code for the connection */
  add(streamId: number, bytes: Buffer, start: number, end: number): number {
    this.openStream = streamId;
    this.#bytes += end - start;
    if (this.#parts.length >= MAX_BLOCK_FRAMES || this.#bytes > MAX_BLOCK_BYTES) return ENHANCE_YOUR_CALM;
    this.#parts.push(Buffer.from(bytes.subarray(start, end)));
    return 0;
  }

  /** Returns the block that was added in parts. */
  take(): Buffer {
    const block = Buffer.concat(this.#parts);
    this.#parts = [];
    this.#bytes = 0;
    this.openStream = 0;
    return block;
  }

  /** Reads a request's block. @returns its target, the error code for its stream, or -1 if the connection must end */
  readRequest(bytes: Buffer, start: number, end: number): BlockMeaning {
    const isAlone = this.#decoder.table.isClosed;
    if (isAlone) {
      const known = this.#memo.find(bytes, start, end);
      if (known !== undefined) return known;
    }
    const code = this.#decode(bytes, start, end);
    if (code !== 0) return code;
    const head = readRequestHead(this.#decoder.fields);
    if (head === undefined) return PROTOCOL_ERROR;
    const target = this.#readTarget(head);
    if (isAlone) this.#memo.keep(bytes, start, end, target);
    return target;
  }

  /**
   * Reads a block after a request's content. @returns 0, the error code for its stream, or -1 if the connection must
   * end
   */
  readTrailers(bytes: Buffer, start: number, end: number): number {
    const code = this.#decode(bytes, start, end);
    if (code !== 0) return code;
    return areTrailers(this.#decoder.fields) ? 0 : PROTOCOL_ERROR;
  }

  #decode(bytes: Buffer, start: number, end: number): number {
    const decoded = this.#decoder.decode(bytes, start, end);
    switch (decoded) {
      case 'fields':
        return 0;
      case 'too-large':
        return ENHANCE_YOUR_CALM;
      case 'broken':
        return -1;
      default:
        return decoded satisfies never;
    }
  }
}

/** The error code for a connection whose block cannot be decoded (section 4.3). */
export const BROKEN_BLOCK = COMPRESSION_ERROR;
