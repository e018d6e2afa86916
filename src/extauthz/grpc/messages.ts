/**
 * Messages in a stream of bytes: one byte for compression, four bytes of length, the message.
 * https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md
 */

import { failure, type GrpcFailure } from './status.ts';

export const PREFIX_BYTES = 5;
/**
 * The largest message of all methods: a check with a body of 16 MiB, which is the most that Envoy is configured to
 * send, and its headers.
 */
export const MAX_MESSAGE_BYTES = 17 * 1024 * 1024;

/** Returns the message with its prefix. */
export function frame(message: Buffer): Buffer {
  const framed = Buffer.allocUnsafe(PREFIX_BYTES + message.length);
  framed[0] = 0;
  framed.writeUInt32BE(message.length, 1);
  message.copy(framed, PREFIX_BYTES);
  return framed;
}

export type Read = { readonly kind: 'message'; readonly message: Buffer } | { readonly kind: 'more' } | GrpcFailure;

const MORE: Read = { kind: 'more' };
const COMPRESSED = failure('unimplemented', 'compressed messages are not supported');
const NOTHING = Buffer.alloc(0);

export function tooLarge(maxBytes: number): GrpcFailure {
  return failure('resourceExhausted', `a message must have at most ${maxBytes} bytes`);
}

/** The largest block of an unfinished message, in bytes, unless one chunk is larger. */
const MAX_BLOCK_BYTES = 64 * 1024;

/** Returns the first message of the bytes. Fails as soon as its prefix announces more than `maxBytes`. */
export function readMessage(bytes: Buffer, maxBytes = MAX_MESSAGE_BYTES): Read {
  if (bytes.length < PREFIX_BYTES) return MORE;
  if (bytes[0] !== 0) return COMPRESSED;
  const length = bytes.readUInt32BE(1);
  if (length > maxBytes) return tooLarge(maxBytes);
  const end = PREFIX_BYTES + length;
  return bytes.length < end ? MORE : { kind: 'message', message: bytes.subarray(PREFIX_BYTES, end) };
}

/**
 * Collects the chunks of an unfinished message in blocks, whose size depends on the bytes that arrived and not on the
 * announced length. It joins the blocks once, when the message is complete. It copies chunks, because a chunk of one
 * byte would otherwise keep the whole read of the socket in memory.
 */
export class MessageParts {
  readonly #maxBytes: number;
  readonly #prefix = Buffer.alloc(PREFIX_BYTES);
  #prefixBytes = 0;
  /** The announced length; valid when the prefix is complete. */
  #announced = 0;
  #blocks: Buffer[] = [];
  /** The last block, and the number of its bytes in use. */
  #block = NOTHING;
  #used = 0;
  /** The bytes of the message that arrived, without the prefix. */
  #arrived = 0;
  #blockBytes = 0;
  /** The bytes of the last chunk that the read consumed. */
  #consumed = 0;

  /** @param maxBytes of one message */
  constructor(maxBytes = MAX_MESSAGE_BYTES) {
    this.#maxBytes = maxBytes;
  }

  /** True if no message is unfinished. */
  get empty(): boolean {
    return this.#prefixBytes === 0;
  }

  /** The memory in use, in bytes: at most 1.5 times the bytes that arrived. */
  get heldBytes(): number {
    return this.#prefixBytes + this.#blockBytes;
  }

  /** The bytes of the last chunk that belong to its first message. */
  get consumed(): number {
    return this.#consumed;
  }

  /**
   * Returns the first message of all chunks: a view of the chunk if no earlier chunk belongs to it. Keeps the chunk if
   * the message is unfinished. Does not read the bytes after the message.
   */
  add(chunk: Buffer): Read {
    if (this.empty) {
      const read = readMessage(chunk, this.#maxBytes);
      if (read.kind === 'message') this.#consumed = PREFIX_BYTES + read.message.length;
      if (read.kind !== 'more') return read;
    }
    const failed = this.#take(chunk);
    if (failed !== undefined) {
      this.drop();
      return failed;
    }
    if (this.#prefixBytes < PREFIX_BYTES || this.#arrived < this.#announced) return MORE;
    const message = this.#blocks.length === 1 ? this.#block : Buffer.concat(this.#blocks, this.#announced);
    this.drop();
    return { kind: 'message', message };
  }

  /**
   * Calls `each` with every message that this chunk completes, until one fails. @returns the failure that ends the
   * stream
   */
  split(chunk: Buffer, each: (message: Buffer) => GrpcFailure | undefined): GrpcFailure | undefined {
    let rest = chunk;
    for (;;) {
      const read = this.add(rest);
      switch (read.kind) {
        case 'message': {
          rest = rest.subarray(this.#consumed);
          const failed = each(read.message);
          if (failed !== undefined) return failed;
          break;
        }
        case 'failure':
          return read;
        case 'more':
          return undefined;
        default:
          return read satisfies never;
      }
    }
  }

  /** Discards the unfinished message, and frees its memory. */
  drop(): void {
    this.#prefixBytes = 0;
    this.#blocks = [];
    this.#block = NOTHING;
    this.#used = 0;
    this.#arrived = 0;
    this.#blockBytes = 0;
  }

  /** Copies the bytes of the chunk that belong to the unfinished message. */
  #take(chunk: Buffer): GrpcFailure | undefined {
    let at = 0;
    if (this.#prefixBytes < PREFIX_BYTES) {
      at = chunk.copy(this.#prefix, this.#prefixBytes);
      this.#prefixBytes += at;
      if (this.#prefixBytes < PREFIX_BYTES) return undefined;
      const read = readMessage(this.#prefix, this.#maxBytes);
      if (read.kind === 'failure') return read;
      this.#announced = this.#prefix.readUInt32BE(1);
    }
    const end = Math.min(chunk.length, at + this.#announced - this.#arrived);
    while (at < end) {
      if (this.#used === this.#block.length) this.#addBlock(end - at);
      const copied = chunk.copy(this.#block, this.#used, at, end);
      at += copied;
      this.#used += copied;
      this.#arrived += copied;
    }
    this.#consumed = end;
    return undefined;
  }

  /**
   * Adds a block for the next `bytes`, with half of what arrived as room for more, so that many small chunks need few
   * blocks.
   */
  #addBlock(bytes: number): void {
    const room = Math.min(this.#arrived >> 1, MAX_BLOCK_BYTES, this.#announced - this.#arrived);
    this.#block = Buffer.allocUnsafeSlow(Math.max(bytes, room));
    this.#used = 0;
    this.#blocks.push(this.#block);
    this.#blockBytes += this.#block.length;
  }
}
