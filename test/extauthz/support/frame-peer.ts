/** A peer that writes HTTP/2 frames by hand, and reads those of the server: for what no HTTP/2 library sends. */

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { HeaderDecoder } from '../../../src/extauthz/http2/hpack-decode.ts';
import { encodeFields } from '../../../src/extauthz/http2/hpack-encode.ts';

export const FRAME = {
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  push: 5,
  ping: 6,
  goaway: 7,
  window: 8,
  continuation: 9,
} as const;
export const END_STREAM = 1;
export const ACK = 1;
export const END_HEADERS = 4;
export const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');

export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
}

export function frameOf(type: number, flags: number, stream: number, payload: Buffer = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

export function requestBlock(
  path: string,
  more: readonly (readonly [string, string])[] = [],
  type = 'application/grpc',
): Buffer {
  return encodeFields([
    [':method', 'POST'],
    [':scheme', 'http'],
    [':path', path],
    [':authority', 'localhost'],
    ['content-type', type],
    ['te', 'trailers'],
    ...more,
  ]);
}

/** HEADERS of a gRPC call whose message follows. */
export const headersOf = (stream: number, path: string): Buffer =>
  frameOf(FRAME.headers, END_HEADERS, stream, requestBlock(path));
/** The whole of a unary call. */
export const callOf = (stream: number, path: string, message: Buffer): Buffer =>
  Buffer.concat([headersOf(stream, path), frameOf(FRAME.data, END_STREAM, stream, message)]);
export const resetOf = (stream: number, code = 8): Buffer => frameOf(FRAME.reset, 0, stream, uint32(code));

/** No code of HTTP/2: the connection ended before the stream. */
export const CUT = -1;

/** The end of a stream, as the peer saw it. */
export interface StreamEnd {
  readonly grpc: string | undefined;
  readonly http: string | undefined;
  readonly body: Buffer;
  /** The code of RST_STREAM, or `CUT`; undefined = the stream ended by itself. */
  readonly reset: number | undefined;
}

interface Incoming {
  readonly fields: Map<string, string>;
  readonly body: Buffer[];
  readonly ended: PromiseWithResolvers<StreamEnd>;
}

export class FramePeer {
  readonly socket: Socket;
  readonly received: Frame[] = [];
  /** The error code of the last GOAWAY. */
  goaway: number | undefined;
  /** Answers SETTINGS and pings, and returns windows. */
  isPolite = true;
  readonly #decoder = new HeaderDecoder();
  readonly #streams = new Map<number, Incoming>();
  readonly #closed = Promise.withResolvers<void>();
  /** Called when something has come. */
  #waiting: (() => void)[] = [];
  #rest: Buffer = Buffer.alloc(0);
  #next = 1;

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on('error', () => undefined);
    socket.on('data', (chunk: Buffer) => this.#read(chunk));
    socket.on('close', () => {
      this.#closed.resolve();
      for (const { fields, ended } of this.#streams.values())
        ended.resolve({
          grpc: fields.get('grpc-status'),
          http: fields.get(':status'),
          body: Buffer.alloc(0),
          reset: CUT,
        });
      this.#wake();
    });
  }

  get isClosed(): boolean {
    return this.socket.closed || this.socket.readableEnded;
  }

  closed(): Promise<void> {
    return this.#closed.promise;
  }

  nextStream(): number {
    const id = this.#next;
    this.#next += 2;
    return id;
  }

  write(...frames: Buffer[]): void {
    if (this.socket.writable) this.socket.write(Buffer.concat(frames));
  }

  /** Resolves when the server has ended the stream; also if it did so before. */
  end(stream: number): Promise<StreamEnd> {
    return this.#incoming(stream).ended.promise;
  }

  /** A whole unary call. */
  call(path: string, message: Buffer): Promise<StreamEnd> {
    const id = this.nextStream();
    this.write(callOf(id, path, message));
    return this.end(id);
  }

  /**
   * Resolves when the server has taken everything that was written before, and its answers have come: it answers a ping
   * before the calls that came in the same read.
   */
  async settled(): Promise<void> {
    await this.#pinged();
    await this.#pinged();
  }

  async #pinged(): Promise<void> {
    const payload = Buffer.from('settled?');
    const answered = this.received.filter(({ type, flags }) => type === FRAME.ping && flags === ACK).length;
    this.write(frameOf(FRAME.ping, 0, 0, payload));
    while (this.received.filter(({ type, flags }) => type === FRAME.ping && flags === ACK).length <= answered) {
      if (this.isClosed) return;
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  destroy(): void {
    this.socket.destroy();
  }

  #incoming(stream: number): Incoming {
    let incoming = this.#streams.get(stream);
    if (incoming === undefined) {
      incoming = { fields: new Map(), body: [], ended: Promise.withResolvers() };
      this.#streams.set(stream, incoming);
    }
    return incoming;
  }

  #read(chunk: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, chunk]);
    let at = 0;
    while (this.#rest.length - at >= 9) {
      const end = at + 9 + this.#rest.readUIntBE(at, 3);
      if (this.#rest.length < end) break;
      this.#take({
        type: this.#rest[at + 3] ?? 0,
        flags: this.#rest[at + 4] ?? 0,
        stream: this.#rest.readUInt32BE(at + 5),
        payload: this.#rest.subarray(at + 9, end),
      });
      at = end;
    }
    this.#rest = this.#rest.subarray(at);
    this.#wake();
  }

  #wake(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }

  #take(frame: Frame): void {
    this.received.push(frame);
    const { type, flags, stream, payload } = frame;
    if (type === FRAME.goaway) this.goaway = payload.readUInt32BE(4);
    if (this.isPolite && type === FRAME.settings && flags === 0) this.write(frameOf(FRAME.settings, ACK, 0));
    if (this.isPolite && type === FRAME.ping && flags === 0) this.write(frameOf(FRAME.ping, ACK, 0, payload));
    if (stream === 0) return;
    const incoming = this.#incoming(stream);
    if (type === FRAME.headers) {
      this.#decoder.decode(payload, 0, payload.length);
      const { fields } = this.#decoder;
      for (let i = 0; i < fields.length; i += 2) incoming.fields.set(fields[i] ?? '', fields[i + 1] ?? '');
    }
    if (type === FRAME.data) {
      incoming.body.push(Buffer.from(payload));
      if (this.isPolite && payload.length > 0) {
        this.write(frameOf(FRAME.window, 0, 0, uint32(payload.length)));
        if ((flags & END_STREAM) === 0) this.write(frameOf(FRAME.window, 0, stream, uint32(payload.length)));
      }
    }
    const isReset = type === FRAME.reset;
    if (!isReset && !((type === FRAME.headers || type === FRAME.data) && (flags & END_STREAM) !== 0)) return;
    incoming.ended.resolve({
      grpc: incoming.fields.get('grpc-status'),
      http: incoming.fields.get(':status'),
      body: Buffer.concat(incoming.body),
      reset: isReset ? payload.readUInt32BE(0) : undefined,
    });
  }
}

/** Connects to a port of this machine and greets the server. */
export async function connectFrames(port: number, settings: Buffer = Buffer.alloc(0)): Promise<FramePeer> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  await once(socket, 'connect');
  const peer = new FramePeer(socket);
  peer.write(PREFACE, frameOf(FRAME.settings, 0, 0, settings));
  return peer;
}
