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

/** Collects the chunks of one message; joins them once, when enough have come. */
export class MessageParts {
  readonly #chunks: Buffer[] = [];
  #length = 0;
  #wanted = PREFIX_BYTES;

  add(chunk: Buffer): Read {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    if (this.#length < this.#wanted) return MORE;
    const joined = Buffer.concat(this.#chunks);
    const read = readMessage(joined);
    if (read.kind === 'more') {
      this.#chunks.splice(0, this.#chunks.length, joined);
      this.#wanted = PREFIX_BYTES + joined.readUInt32BE(1);
    }
    return read;
  }
}
