/** Frames: their head, their types and flags, and the error codes (RFC 9113, sections 4.1, 6 and 7). */

export const FRAME_HEAD_BYTES = 9;
/**
 * The largest payload that this server accepts: the protocol's minimum, because it does not raise
 * SETTINGS_MAX_FRAME_SIZE.
 */
export const MAX_FRAME_BYTES = 16_384;
/** RFC 9113, section 6.9.2 */
export const DEFAULT_WINDOW = 65_535;
export const MAX_WINDOW = 0x7fffffff;
export const MAX_STREAM_ID = 0x7fffffff;

export const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');

export const DATA = 0;
export const HEADERS = 1;
export const PRIORITY = 2;
export const RST_STREAM = 3;
export const SETTINGS_FRAME = 4;
export const PUSH_PROMISE = 5;
export const PING = 6;
export const GOAWAY = 7;
export const WINDOW_UPDATE = 8;
export const CONTINUATION = 9;

/** In DATA and HEADERS. */
export const END_STREAM = 0x1;
/** In SETTINGS and PING. */
export const ACK = 0x1;
export const END_HEADERS = 0x4;
export const PADDED = 0x8;
export const HAS_PRIORITY = 0x20;

export const NO_ERROR = 0;
export const PROTOCOL_ERROR = 1;
export const INTERNAL_ERROR = 2;
export const FLOW_CONTROL_ERROR = 3;
export const SETTINGS_TIMEOUT = 4;
export const STREAM_CLOSED = 5;
export const FRAME_SIZE_ERROR = 6;
export const REFUSED_STREAM = 7;
export const CANCEL = 8;
export const COMPRESSION_ERROR = 9;
export const ENHANCE_YOUR_CALM = 11;

/** Writes a frame's head at an offset that has room for it. */
export function writeFrameHead(
  bytes: Buffer,
  at: number,
  length: number,
  type: number,
  flags: number,
  streamId: number,
): void {
  bytes[at] = length >>> 16;
  bytes[at + 1] = length >>> 8;
  bytes[at + 2] = length;
  bytes[at + 3] = type;
  bytes[at + 4] = flags;
  writeUint32(bytes, at + 5, streamId);
}

/** Writes 32 bits in network order, without the checks of `Buffer.writeUInt32BE`. */
export function writeUint32(bytes: Buffer, at: number, value: number): void {
  bytes[at] = value >>> 24;
  bytes[at + 1] = value >>> 16;
  bytes[at + 2] = value >>> 8;
  bytes[at + 3] = value;
}

/** Reads 31 bits in network order; the first bit is reserved. */
export function readUint31(bytes: Buffer, at: number): number {
  return (
    (((bytes[at] ?? 0) & 0x7f) << 24) |
    ((bytes[at + 1] ?? 0) << 16) |
    ((bytes[at + 2] ?? 0) << 8) |
    (bytes[at + 3] ?? 0)
  );
}
