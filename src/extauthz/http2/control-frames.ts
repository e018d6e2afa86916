/** The frames that a connection writes besides those of its streams' answers (RFC 9113, section 6). */

import {
  ACK,
  FRAME_HEAD_BYTES,
  GOAWAY,
  PING,
  RST_STREAM,
  SETTINGS_FRAME,
  WINDOW_UPDATE,
  writeFrameHead,
  writeUint32,
} from './frames.ts';
import type { Output } from './output.ts';

/** Section 6.4 */
export function writeReset(output: Output, id: number, code: number): void {
  const at = output.reserve(FRAME_HEAD_BYTES + 4);
  writeFrameHead(output.bytes, at, 4, RST_STREAM, 0, id);
  writeUint32(output.bytes, at + FRAME_HEAD_BYTES, code);
}

/** Section 6.9. @param id 0 = the connection's window */
export function writeWindowUpdate(output: Output, id: number, increment: number): void {
  const at = output.reserve(FRAME_HEAD_BYTES + 4);
  writeFrameHead(output.bytes, at, 4, WINDOW_UPDATE, 0, id);
  writeUint32(output.bytes, at + FRAME_HEAD_BYTES, increment);
}

/** Section 6.8 */
export function writeGoaway(output: Output, lastId: number, code: number): void {
  const at = output.reserve(FRAME_HEAD_BYTES + 8);
  writeFrameHead(output.bytes, at, 8, GOAWAY, 0, 0);
  writeUint32(output.bytes, at + FRAME_HEAD_BYTES, lastId);
  writeUint32(output.bytes, at + FRAME_HEAD_BYTES + 4, code);
}

/** Section 6.7. @param payload eight bytes */
export function writePing(output: Output, flags: number, payload: Buffer): void {
  const at = output.reserve(FRAME_HEAD_BYTES + payload.length);
  writeFrameHead(output.bytes, at, payload.length, PING, flags, 0);
  output.bytes.set(payload, at + FRAME_HEAD_BYTES);
}

/** Section 6.5.3 */
export function writeSettingsAck(output: Output): void {
  const at = output.reserve(FRAME_HEAD_BYTES);
  writeFrameHead(output.bytes, at, 0, SETTINGS_FRAME, ACK, 0);
}
