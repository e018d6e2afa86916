/** SETTINGS (RFC 9113, section 6.5). */

import { CONNECTION_WINDOW, MAX_HEADER_LIST_BYTES, MAX_SETTINGS, MAX_STREAMS, STREAM_WINDOW } from './bounds.ts';
import {
  DEFAULT_WINDOW,
  ENHANCE_YOUR_CALM,
  FLOW_CONTROL_ERROR,
  FRAME_HEAD_BYTES,
  FRAME_SIZE_ERROR,
  MAX_FRAME_BYTES,
  MAX_WINDOW,
  NO_ERROR,
  PROTOCOL_ERROR,
  SETTINGS_FRAME,
  WINDOW_UPDATE,
  writeFrameHead,
} from './frames.ts';

const HEADER_TABLE_SIZE = 1;
const ENABLE_PUSH = 2;
const MAX_CONCURRENT_STREAMS = 3;
const INITIAL_WINDOW_SIZE = 4;
const MAX_FRAME_SIZE = 5;
const MAX_HEADER_LIST_SIZE = 6;

const SETTING_BYTES = 6;
const LARGEST_FRAME_BYTES = 0xffffff;

/**
 * This server's first bytes: its settings, and the connection's window, which settings do not change (section 6.9.2).
 */
export const GREETING: Buffer = greeting([
  [HEADER_TABLE_SIZE, 0],
  [MAX_CONCURRENT_STREAMS, MAX_STREAMS],
  [INITIAL_WINDOW_SIZE, STREAM_WINDOW],
  [MAX_HEADER_LIST_SIZE, MAX_HEADER_LIST_BYTES],
]);

function greeting(settings: readonly (readonly [number, number])[]): Buffer {
  const length = settings.length * SETTING_BYTES;
  const bytes = Buffer.alloc(2 * FRAME_HEAD_BYTES + length + 4);
  writeFrameHead(bytes, 0, length, SETTINGS_FRAME, 0, 0);
  let at = FRAME_HEAD_BYTES;
  for (const [id, value] of settings) {
    bytes.writeUInt16BE(id, at);
    bytes.writeUInt32BE(value, at + 2);
    at += SETTING_BYTES;
  }
  writeFrameHead(bytes, at, 4, WINDOW_UPDATE, 0, 0);
  bytes.writeUInt32BE(CONNECTION_WINDOW - DEFAULT_WINDOW, at + FRAME_HEAD_BYTES);
  return bytes;
}

/** The settings of a peer that this server uses. It never refers to the peer's table, and pushes nothing. */
export class PeerSettings {
  initialWindow = DEFAULT_WINDOW;
  maxFrameBytes = MAX_FRAME_BYTES;

  /**
   * Applies the payload of one SETTINGS frame.
   * @returns an error code; 0 = no error
   */
  take(bytes: Buffer, start: number, length: number): number {
    if (length % SETTING_BYTES !== 0) return FRAME_SIZE_ERROR;
    if (length > MAX_SETTINGS * SETTING_BYTES) return ENHANCE_YOUR_CALM;
    for (let at = start; at < start + length; at += SETTING_BYTES) {
      const error = this.#set(bytes.readUInt16BE(at), bytes.readUInt32BE(at + 2));
      if (error !== NO_ERROR) return error;
    }
    return NO_ERROR;
  }

  /** An unknown setting is ignored (section 6.5.2). */
  #set(id: number, value: number): number {
    if (id === ENABLE_PUSH && value > 1) return PROTOCOL_ERROR;
    if (id === INITIAL_WINDOW_SIZE) {
      if (value > MAX_WINDOW) return FLOW_CONTROL_ERROR;
      this.initialWindow = value;
    }
    if (id === MAX_FRAME_SIZE) {
      if (value < MAX_FRAME_BYTES || value > LARGEST_FRAME_BYTES) return PROTOCOL_ERROR;
      this.maxFrameBytes = value;
    }
    return NO_ERROR;
  }
}
