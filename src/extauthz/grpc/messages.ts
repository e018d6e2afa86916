/** Messages in a stream of bytes: one byte that says whether it is compressed, four of length, the message. https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md */

import { failure, type GrpcFailure } from './status.ts';

export const PREFIX_BYTES = 5;
/** The largest message of all methods: a check with a body of 16 MiB, which is the most that Envoy is configured to send, and its headers. */
export const MAX_MESSAGE_BYTES = 17 * 1024 * 1024;

/** The message with its prefix. */
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
/** Each time that the buffer is too small. */
const GROWTH = 1.5;

/** Returns the first message of the bytes that came so far, and fails as soon as its prefix announces more than `maxBytes`. */
export function readMessage(bytes: Buffer, maxBytes = MAX_MESSAGE_BYTES): Read {
  if (bytes.length < PREFIX_BYTES) return MORE;
  if (bytes[0] !== 0) return COMPRESSED;
  const length = bytes.readUInt32BE(1);
  if (length > maxBytes) return failure('resourceExhausted', `a message must have at most ${maxBytes} bytes`);
  const end = PREFIX_BYTES + length;
  return bytes.length < end ? MORE : { kind: 'message', message: bytes.subarray(PREFIX_BYTES, end) };
}

/**
 * Collects the chunks of messages in one buffer, which grows with what has come and not with what is announced. At most one unfinished
 * message is kept. Chunks are copied: a chunk of one byte would otherwise keep all that was read from the socket together with it.
 */
export class MessageParts {
  readonly #maxBytes: number;
  #bytes = NOTHING;
  #length = 0;

  /** @param maxBytes of one message */
  constructor(maxBytes = MAX_MESSAGE_BYTES) {
    this.#maxBytes = maxBytes;
  }

  /** True when nothing of a message is waiting for its rest. */
  get empty(): boolean {
    return this.#length === 0;
  }

  /** Memory in use, in bytes: at most 1.5 times what has come. */
  get heldBytes(): number {
    return this.#bytes.length;
  }

  /** Returns the first message of all that was added. */
  add(chunk: Buffer): Read {
    const bytes = this.#append(chunk);
    const read = readMessage(bytes, this.#maxBytes);
    if (read.kind === 'more') this.#keep(bytes);
    else this.drop();
    return read;
  }

  /** Calls `each` with every message that this chunk completes, until it fails. @returns why nothing more of the stream is read */
  split(chunk: Buffer, each: (message: Buffer) => GrpcFailure | undefined): GrpcFailure | undefined {
    let rest = this.#append(chunk);
    for (;;) {
      const read = readMessage(rest, this.#maxBytes);
      switch (read.kind) {
        case 'message': {
          rest = rest.subarray(PREFIX_BYTES + read.message.length);
          const failed = each(read.message);
          if (failed !== undefined) return failed;
          break;
        }
        case 'failure':
          return read;
        case 'more':
          this.#keep(rest);
          return undefined;
        default:
          return read satisfies never;
      }
    }
  }

  /** Forgets what was kept, and frees its memory. */
  drop(): void {
    this.#bytes = NOTHING;
    this.#length = 0;
  }

  /** Returns all that came and was not taken: the chunk itself where nothing was kept. */
  #append(chunk: Buffer): Buffer {
    if (this.#length === 0) return chunk;
    const length = this.#length + chunk.length;
    if (length > this.#bytes.length) this.#grow(length);
    chunk.copy(this.#bytes, this.#length);
    this.#length = length;
    return this.#bytes.subarray(0, length);
  }

  /** By half at least, so that many small chunks are not copied again and again; not past the message's end, if the prefix is there. */
  #grow(length: number): void {
    const ample = Math.ceil(this.#bytes.length * GROWTH);
    const end = this.#length < PREFIX_BYTES ? length : PREFIX_BYTES + this.#bytes.readUInt32BE(1);
    const grown = Buffer.allocUnsafeSlow(Math.max(length, Math.min(ample, end)));
    this.#bytes.copy(grown, 0, 0, this.#length);
    this.#bytes = grown;
  }

  #keep(bytes: Buffer): void {
    // No message was taken: they lie where they are to be.
    if (bytes.buffer === this.#bytes.buffer && bytes.byteOffset === this.#bytes.byteOffset) return;
    this.#length = bytes.length;
    this.#bytes = bytes.length === 0 ? NOTHING : Buffer.allocUnsafeSlow(bytes.length);
    bytes.copy(this.#bytes);
  }
}
