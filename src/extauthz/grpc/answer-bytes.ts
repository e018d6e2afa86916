/** Prepared bytes of answers: header blocks, and the frames of an answer that is sent at once (RFC 9113, section 6). */

import {
  DATA,
  END_HEADERS,
  END_STREAM,
  FRAME_HEAD_BYTES,
  HEADERS,
  writeFrameHead,
  writeUint32,
} from '../http2/frames.ts';
import { encodeFields } from '../http2/hpack-encode.ts';
import type { Stream } from '../http2/stream.ts';
import { PREFIX_BYTES } from './messages.ts';
import type { GrpcFailure } from './status.ts';

const CONTENT_TYPE = ['content-type', 'application/grpc'] as const;

/** The header block of a call whose messages and trailers follow. */
export const OK_HEAD: Buffer = encodeFields([[':status', '200'], CONTENT_TYPE]);
export const OK_TRAILERS: Buffer = encodeFields([['grpc-status', '0']]);

/** Returns the trailers of a call whose headers were sent. */
export function trailersOf({ status, message }: GrpcFailure): Buffer {
  return encodeFields([
    ['grpc-status', String(status)],
    ['grpc-message', message],
  ]);
}

/** Returns headers and trailers of a call without a message, in one block. */
export function failureHead({ status, message }: GrpcFailure): Buffer {
  return encodeFields([[':status', '200'], CONTENT_TYPE, ['grpc-status', String(status)], ['grpc-message', message]]);
}

/** The content of the answer to a request that is not gRPC. */
export const NOT_GRPC_TEXT: Buffer = Buffer.from('This listener accepts only gRPC.\n');

/** Returns the headers of the answer to a request that is not gRPC: an HTTP status, as the protocol requires. */
export function httpHead(status: number): Buffer {
  return encodeFields([
    [':status', String(status)],
    ['content-type', 'text/plain'],
    ['content-length', String(NOT_GRPC_TEXT.length)],
  ]);
}

/** HEADERS, the head of DATA, and the prefix of the message. The numbers are set for each answer. */
const BEFORE = Buffer.alloc(FRAME_HEAD_BYTES + OK_HEAD.length + FRAME_HEAD_BYTES + PREFIX_BYTES);
const DATA_AT = FRAME_HEAD_BYTES + OK_HEAD.length;
const AFTER = Buffer.alloc(FRAME_HEAD_BYTES + OK_TRAILERS.length);
writeFrameHead(BEFORE, 0, OK_HEAD.length, HEADERS, END_HEADERS, 0);
OK_HEAD.copy(BEFORE, FRAME_HEAD_BYTES);
writeFrameHead(AFTER, 0, OK_TRAILERS.length, HEADERS, END_HEADERS | END_STREAM, 0);
OK_TRAILERS.copy(AFTER, FRAME_HEAD_BYTES);
const ID_AT = 5;

/** Writes a whole answer into the connection's output. The answer must fit (`stream.fits`). */
export function writeAnswer(stream: Stream, message: Buffer): void {
  const { connection, id } = stream;
  const { output } = connection;
  const length = message.length;
  const content = PREFIX_BYTES + length;
  const at = output.reserve(BEFORE.length + length + AFTER.length);
  const { bytes } = output;
  bytes.set(BEFORE, at);
  writeUint32(bytes, at + ID_AT, id);
  writeFrameHead(bytes, at + DATA_AT, content, DATA, 0, id);
  writeUint32(bytes, at + BEFORE.length - 4, length);
  bytes.set(message, at + BEFORE.length);
  const after = at + BEFORE.length + length;
  bytes.set(AFTER, after);
  writeUint32(bytes, after + ID_AT, id);
  stream.sendWindow -= content;
  connection.sendWindow -= content;
}
