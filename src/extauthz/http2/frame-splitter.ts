/**
 * Splits the bytes of a socket into frames, in place (RFC 9113, section 4.1). It copies only a frame that continues in
 * the next read, and never reuses that copy, because the receiver of a part may keep it.
 */

import { FRAME_HEAD_BYTES, FRAME_SIZE_ERROR, MAX_FRAME_BYTES, NO_ERROR, PREFACE, PROTOCOL_ERROR } from './frames.ts';

interface FrameReader {
  /**
   * Processes the frame whose head is at `at`, followed by `length` bytes of payload. @returns an error code, after
   * which the splitter reads nothing
   */
  frame(bytes: Buffer, at: number, length: number): number;
}

export class FrameSplitter {
  readonly #reader: FrameReader;
  /** The remaining bytes of the preface (section 3.4). */
  #prefaceLeft = PREFACE.length;
  /** The beginning of a frame. The buffer has room for the rest if the head is complete. */
  #part: Buffer | undefined;
  #partLength = 0;

  constructor(reader: FrameReader) {
    this.#reader = reader;
  }

  /** @returns an error code, after which no more may be pushed */
  push(bytes: Buffer): number {
    let at = 0;
    if (this.#prefaceLeft > 0) {
      at = this.#readPreface(bytes);
      if (at < 0) return PROTOCOL_ERROR;
    }
    if (this.#part !== undefined) {
      at = this.#complete(bytes, at);
      if (this.#part !== undefined) return oversized(this.#part, 0, this.#partLength);
      // The completed frame is invalid.
      if (at < 0) return -at;
    }
    const end = bytes.length;
    while (end - at >= FRAME_HEAD_BYTES) {
      const length = lengthOf(bytes, at);
      if (length > MAX_FRAME_BYTES) return FRAME_SIZE_ERROR;
      const next = at + FRAME_HEAD_BYTES + length;
      if (next > end) break;
      const error = this.#reader.frame(bytes, at, length);
      if (error !== NO_ERROR) return error;
      at = next;
    }
    if (at < end) this.#keep(bytes, at);
    return NO_ERROR;
  }

  /** @returns the offset after the preface, or -1 if the bytes are no preface */
  #readPreface(bytes: Buffer): number {
    const from = PREFACE.length - this.#prefaceLeft;
    const count = Math.min(this.#prefaceLeft, bytes.length);
    if (PREFACE.compare(bytes, 0, count, from, from + count) !== 0) return -1;
    this.#prefaceLeft -= count;
    return count;
  }

  #keep(bytes: Buffer, at: number): void {
    const have = bytes.length - at;
    const size = have < FRAME_HEAD_BYTES ? FRAME_HEAD_BYTES : FRAME_HEAD_BYTES + lengthOf(bytes, at);
    this.#part = Buffer.allocUnsafe(size);
    this.#partLength = bytes.copy(this.#part, 0, at);
  }

  /**
   * Adds bytes to the incomplete frame, and passes it on when it is complete. @returns the next offset, or a negated
   * error code
   */
  #complete(bytes: Buffer, from: number): number {
    let part = this.#part ?? bytes;
    let at = from;
    if (this.#partLength < FRAME_HEAD_BYTES) {
      at += this.#fill(part, bytes, at, FRAME_HEAD_BYTES);
      if (this.#partLength < FRAME_HEAD_BYTES) return at;
      const length = lengthOf(part, 0);
      if (length > MAX_FRAME_BYTES) return at;
      const whole = Buffer.allocUnsafe(FRAME_HEAD_BYTES + length);
      part.copy(whole, 0, 0, FRAME_HEAD_BYTES);
      part = whole;
      this.#part = whole;
    }
    at += this.#fill(part, bytes, at, part.length);
    if (this.#partLength < part.length) return at;
    this.#part = undefined;
    this.#partLength = 0;
    const error = this.#reader.frame(part, 0, part.length - FRAME_HEAD_BYTES);
    return error === NO_ERROR ? at : -error;
  }

  /** Copies bytes up to `length`. @returns the number of copied bytes */
  #fill(part: Buffer, bytes: Buffer, at: number, length: number): number {
    const count = Math.min(length - this.#partLength, bytes.length - at);
    bytes.copy(part, this.#partLength, at, at + count);
    this.#partLength += count;
    return count;
  }
}

function lengthOf(bytes: Buffer, at: number): number {
  return ((bytes[at] ?? 0) << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
}

function oversized(part: Buffer, at: number, have: number): number {
  return have >= FRAME_HEAD_BYTES && lengthOf(part, at) > MAX_FRAME_BYTES ? FRAME_SIZE_ERROR : NO_ERROR;
}
