/** Messages in a stream of bytes: one byte that says whether it is compressed, four of length, the message. https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md */

import { failure, type GrpcFailure } from './status.ts';

const PREFIX_BYTES = 5;
export const MAX_MESSAGE_BYTES = 16 * 1024 * 1024;

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
const TOO_LARGE = failure('resourceExhausted', `a message has at most ${MAX_MESSAGE_BYTES} bytes`);

/** The first message of the bytes that came so far. What follows it is not looked at. */
export function readMessage(bytes: Buffer): Read {
  if (bytes.length < PREFIX_BYTES) return MORE;
  if (bytes[0] !== 0) return COMPRESSED;
  const end = PREFIX_BYTES + bytes.readUInt32BE(1);
  if (end > PREFIX_BYTES + MAX_MESSAGE_BYTES) return TOO_LARGE;
  return bytes.length < end ? MORE : { kind: 'message', message: bytes.subarray(PREFIX_BYTES, end) };
}

/** Collects the chunks of messages; joins them once, when enough have come. At most one unfinished message is kept. */
export class MessageParts {
  #chunks: Buffer[] = [];
  #length = 0;
  #wanted = PREFIX_BYTES;

  /** True when nothing of a message is waiting for its rest. */
  get empty(): boolean {
    return this.#length === 0;
  }

  /** The first message of all that was added. */
  add(chunk: Buffer): Read {
    const joined = this.#join(chunk);
    if (joined === undefined) return MORE;
    const read = readMessage(joined);
    if (read.kind === 'more') this.#keep(joined);
    return read;
  }

  /** Calls `each` with every message that this chunk completes, until it fails. @returns why nothing more of the stream is read */
  split(chunk: Buffer, each: (message: Buffer) => GrpcFailure | undefined): GrpcFailure | undefined {
    let rest = this.#join(chunk);
    while (rest !== undefined) {
      const read = readMessage(rest);
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
          rest = undefined;
          break;
        default:
          read satisfies never;
      }
    }
    return undefined;
  }

  /** All that came and was not taken; undefined when that is surely no whole message. */
  #join(chunk: Buffer): Buffer | undefined {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    if (this.#length < this.#wanted) return undefined;
    const [only, ...others] = this.#chunks;
    const joined = only !== undefined && others.length === 0 ? only : Buffer.concat(this.#chunks);
    this.#chunks = [];
    this.#length = 0;
    this.#wanted = PREFIX_BYTES;
    return joined;
  }

  #keep(bytes: Buffer): void {
    if (bytes.length === 0) return;
    this.#chunks = [bytes];
    this.#length = bytes.length;
    this.#wanted = bytes.length < PREFIX_BYTES ? PREFIX_BYTES : PREFIX_BYTES + bytes.readUInt32BE(1);
  }
}
