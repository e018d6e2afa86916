/**
 * Writes HTTP/2 frames by hand: a client that resets a stream in the packet that opened it, which node:http2 does not
 * do.
 */

import { once } from 'node:events';
import type { TLSSocket } from 'node:tls';
import { dial, type Edge, type Request } from './connection.ts';

const DATA = 0;
const HEADERS = 1;
const RST_STREAM = 3;
const SETTINGS = 4;
const PING = 6;
const GOAWAY = 7;
const WINDOW_UPDATE = 8;
const END_STREAM = 1;
const ACK = 1;
const END_HEADERS = 4;
const CANCEL = 8;
const HEAD_BYTES = 9;
const MAX_FRAME_BYTES = 16_384;
const OPENING_TIMEOUT_MS = 5000;
const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');

export interface RawConnection {
  /** True after Envoy sent GOAWAY or the connection ended. */
  readonly isOver: () => boolean;
  write(frames: readonly Buffer[]): void;
  /** The id of the next stream. */
  nextStream(): number;
  close(): void;
}

export interface RawListener {
  /** An answer is complete. @param body undefined if the stream was reset */
  ended(stream: number, body: string | undefined): void;
}

/** Rejects if Envoy does not accept the connection within 5 s. */
export async function openRaw(edge: Edge, localAddress: string, listener?: RawListener): Promise<RawConnection> {
  const socket = dial(edge, localAddress);
  let over = false;
  await once(socket, 'secureConnect', { signal: AbortSignal.timeout(OPENING_TIMEOUT_MS) });
  const end = (): void => {
    over = true;
  };
  socket.once('close', end).on('error', end);
  readFrames(socket, end, listener);
  socket.write(Buffer.concat([PREFACE, frame(SETTINGS, 0, 0, Buffer.alloc(0))]));
  let stream = -1;
  return {
    isOver: () => over,
    write(frames) {
      if (!over) socket.write(Buffer.concat(frames));
    },
    nextStream() {
      stream += 2;
      return stream;
    },
    close: () => socket.destroy(),
  };
}

/** Acknowledges what must be, gives back the connection's window, and hands the bodies of answers on. */
function readFrames(socket: TLSSocket, end: () => void, listener: RawListener | undefined): void {
  let rest: Buffer = Buffer.alloc(0);
  const bodies = new Map<number, string>();
  socket.on('data', (chunk: Buffer) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    let received = 0;
    while (rest.length >= HEAD_BYTES) {
      const size = HEAD_BYTES + rest.readUIntBE(0, 3);
      if (rest.length < size) break;
      const type = rest[3];
      const flags = rest[4] ?? 0;
      const stream = rest.readUInt32BE(5);
      const payload = rest.subarray(HEAD_BYTES, size);
      rest = rest.subarray(size);
      if (type === SETTINGS && (flags & ACK) === 0) socket.write(frame(SETTINGS, ACK, 0, Buffer.alloc(0)));
      if (type === PING && (flags & ACK) === 0) socket.write(frame(PING, ACK, 0, payload));
      if (type === GOAWAY) end();
      if (listener === undefined) continue;
      if (type === DATA) {
        received += payload.length;
        bodies.set(stream, (bodies.get(stream) ?? '') + payload.toString());
      }
      const isEnd = (type === DATA || type === HEADERS) && (flags & END_STREAM) !== 0;
      if (!isEnd && type !== RST_STREAM) continue;
      listener.ended(stream, isEnd ? (bodies.get(stream) ?? '') : undefined);
      bodies.delete(stream);
    }
    if (received > 0) socket.write(windowFrame(received));
  });
}

function windowFrame(bytes: number): Buffer {
  const increment = Buffer.alloc(4);
  increment.writeUInt32BE(bytes);
  return frame(WINDOW_UPDATE, 0, 0, increment);
}

/** The frames of one request, its body complete. */
export function requestFrames(stream: number, request: Request): Buffer[] {
  const body = Buffer.from(request.body ?? '');
  const frames = [frame(HEADERS, END_HEADERS | (body.length === 0 ? END_STREAM : 0), stream, headerBlock(request))];
  for (let at = 0; at < body.length; at += MAX_FRAME_BYTES) {
    const piece = body.subarray(at, at + MAX_FRAME_BYTES);
    frames.push(frame(DATA, at + MAX_FRAME_BYTES >= body.length ? END_STREAM : 0, stream, piece));
  }
  return frames;
}

export function resetFrame(stream: number): Buffer {
  const code = Buffer.alloc(4);
  code.writeUInt32BE(CANCEL);
  return frame(RST_STREAM, 0, stream, code);
}

function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** HPACK without an index or Huffman codes (RFC 7541, section 6.2.2). */
function headerBlock(request: Request): Buffer {
  const headers: [string, string][] = [
    [':method', request.method],
    [':scheme', 'https'],
    [':path', request.path],
    [':authority', 'localhost'],
  ];
  if (request.authorization !== undefined) headers.push(['authorization', request.authorization]);
  if (request.body !== undefined) headers.push(['content-type', 'application/json']);
  return Buffer.concat(headers.flatMap(([name, value]) => [Buffer.of(0), literal(name), literal(value)]));
}

function literal(text: string): Buffer {
  const bytes = Buffer.from(text);
  return Buffer.concat([prefixed(bytes.length), bytes]);
}

/** An integer with a prefix of 7 bits (RFC 7541, section 5.1). */
function prefixed(value: number): Buffer {
  if (value < 127) return Buffer.of(value);
  const bytes = [127];
  let rest = value - 127;
  for (; rest > 127; rest >>= 7) bytes.push((rest & 127) | 128);
  bytes.push(rest);
  return Buffer.from(bytes);
}
