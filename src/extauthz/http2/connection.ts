/**
 * One connection: reads frames, keeps the streams, and writes answers (RFC 9113, sections 5 and 6).
 *
 * The connection processes a read completely before it runs a stream, and then writes everything that the read caused
 * at once. A request that its peer resets in the same read is therefore never decided.
 *
 * A peer's error ends as little as the protocol permits: the stream, if later frames can still be understood, otherwise
 * the connection.
 */

import type { Socket } from 'node:net';
import {
  CONNECTION_WINDOW,
  MAX_FAREWELL_MS,
  MAX_GREETING_MS,
  MAX_QUEUED_BYTES,
  MAX_STALL_MS,
  MAX_STREAMS,
  SETTINGS_COST,
  STREAM_WINDOW,
} from './bounds.ts';
import { Conduct } from './conduct.ts';
import { writeGoaway, writePing, writeReset, writeSettingsAck, writeWindowUpdate } from './control-frames.ts';
import { FrameSplitter } from './frame-splitter.ts';
import {
  ACK,
  CONTINUATION,
  DATA,
  DEFAULT_WINDOW,
  END_HEADERS,
  END_STREAM,
  ENHANCE_YOUR_CALM,
  FLOW_CONTROL_ERROR,
  FRAME_HEAD_BYTES,
  FRAME_SIZE_ERROR,
  GOAWAY,
  HAS_PRIORITY,
  HEADERS,
  INTERNAL_ERROR,
  MAX_STREAM_ID,
  MAX_WINDOW,
  NO_ERROR,
  PADDED,
  PING,
  PRIORITY,
  PROTOCOL_ERROR,
  PUSH_PROMISE,
  REFUSED_STREAM,
  RST_STREAM,
  readUint31,
  SETTINGS_FRAME,
  SETTINGS_TIMEOUT,
  STREAM_CLOSED,
  WINDOW_UPDATE,
} from './frames.ts';
import { BROKEN_BLOCK, HeaderBlocks, type ReadTarget } from './header-blocks.ts';
import type { HeaderMemo } from './header-memo.ts';
import { Output } from './output.ts';
import { GREETING, PeerSettings } from './settings.ts';
import type { Stream, Target } from './stream.ts';
import { WaitingStreams } from './waiting-streams.ts';

interface ConnectionParts {
  readonly readTarget: ReadTarget;
  readonly memo: HeaderMemo<Target>;
  /** A monotonic clock, in milliseconds. */
  readonly nowMs: () => number;
  readonly counts: ConnectionCounts;
}

/** The counts of all connections since the process began. */
export interface ConnectionCounts {
  /** Streams that were refused because their peer resets too many of their kind, or has too many open. */
  refusedStreams: number;
  /** Connections that this server ended because of their peer's behavior, not because of a fault. */
  endedConnections: number;
  /** Exceptions in this server's own code, each of which ended its connection. */
  faults: number;
}

const PING_BYTES = 8;
/** The payloads of this server's pings. */
const KEEPALIVE = Buffer.from('postern?', 'latin1');
const DRAINING = Buffer.from('draining', 'latin1');

export class Connection {
  readonly output: Output;
  readonly peer = new PeerSettings();
  readonly socket: Socket;
  sendWindow = DEFAULT_WINDOW;
  /** The time at the beginning of the current read. */
  nowMs: number;

  readonly #parts: ConnectionParts;
  readonly #splitter: FrameSplitter;
  readonly #blocks: HeaderBlocks;
  readonly #streams = new Map<number, Stream>();
  readonly #conduct: Conduct;
  readonly #waiting = new WaitingStreams();
  readonly #flushSoon = (): void => this.#flushLater();
  #ready: Stream[] = [];
  #unfinishedPeers: Stream[] = [];
  #untaken: Stream[] = [];
  #lastId = 0;
  /** The bytes that the peer may still send on the connection. */
  #receiveWindow = CONNECTION_WINDOW;
  /** The END_STREAM flag of the incomplete block. */
  #blockEndsStream = false;
  #hasSettings = false;
  #isGreeted = false;
  #isReading = false;
  #willFlush = false;
  #isOver = false;
  #isFailed = false;
  #pingIsOpen = false;
  /** The last stream that the connection serves; undefined while it does not drain. */
  #lastServed: number | undefined;
  #drainingSinceMs: number | undefined;
  readonly #begunMs: number;
  #stalledSinceMs = 0;
  #bytesTaken = 0;
  #failedAtMs = 0;

  /** @param begunMs the time at which the socket was accepted */
  constructor(socket: Socket, parts: ConnectionParts, begunMs: number) {
    this.socket = socket;
    this.#parts = parts;
    this.nowMs = begunMs;
    this.#begunMs = begunMs;
    this.output = new Output(socket);
    this.#splitter = new FrameSplitter(this);
    this.#blocks = new HeaderBlocks(parts.memo, parts.readTarget);
    this.#conduct = new Conduct(begunMs);
    socket.on('data', (bytes: Buffer) => this.#read(bytes));
    socket.on('drain', () => this.#drained());
    socket.on('error', ignore);
    socket.on('close', () => this.#gone());
    this.output.append(GREETING);
    this.output.flush();
  }

  get streams(): number {
    return this.#streams.size;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Runs the stream once, after the current read is processed. */
  whenRead(stream: Stream): void {
    this.#ready.push(stream);
  }

  /** Calls the stream's `settled` when the socket has sent, or lost, the bytes written now. */
  whenTaken(stream: Stream): void {
    this.#untaken.push(stream);
  }

  /** Stops the peer of an ended stream with NO_ERROR, unless the current read brings the peer's end (section 8.1). */
  stopPeer(stream: Stream): void {
    this.#unfinishedPeers.push(stream);
    this.wantFlush();
  }

  /** Sends the written bytes at the end of the read, or at the end of the current turn outside of a read. */
  wantFlush(): void {
    if (this.#isReading || this.#willFlush) return;
    this.#willFlush = true;
    process.nextTick(this.#flushSoon);
  }

  dataFrameSent(): void {
    this.#conduct.permitControl();
  }

  /** Records that a stream has `bytes` more to send. */
  queue(stream: Stream, bytes: number): void {
    this.#waiting.add(stream, bytes);
    if (this.#waiting.bytes > MAX_QUEUED_BYTES) this.reset(stream, ENHANCE_YOUR_CALM);
  }

  /** Records that `bytes` were sent or discarded. */
  unqueue(bytes: number): void {
    this.#waiting.subtract(bytes);
  }

  /** Ends a stream with RST_STREAM (section 6.4). */
  reset(stream: Stream, code: number): void {
    if (stream.isOver) return;
    this.#writeReset(stream.id, code);
    this.forget(stream);
  }

  /** Called once when a stream is over. */
  forget(stream: Stream): void {
    if (stream.isOver) return;
    stream.isOver = true;
    this.#streams.delete(stream.id);
    if (stream.hasQueue) {
      this.#waiting.delete(stream);
      stream.dropQueue();
    }
    stream.closed();
    if (this.#streams.size === 0 && this.#lastServed !== undefined) this.wantFlush();
  }

  /** Sends a ping, and cuts the connection if the one before was not answered. */
  ping(): void {
    if (this.#isOver || this.#isFailed) return;
    if (this.#pingIsOpen) {
      this.#cut();
      return;
    }
    this.#pingIsOpen = true;
    writePing(this.output, 0, KEEPALIVE);
    this.wantFlush();
  }

  /**
   * Serves the open streams and no new ones (section 6.8). The peer may send requests before it reads the first GOAWAY,
   * so a second GOAWAY with the number of the last stream follows when the peer has answered a ping.
   */
  drain(): void {
    if (this.#isOver || this.#isFailed || this.#drainingSinceMs !== undefined) return;
    this.#drainingSinceMs = this.#parts.nowMs();
    writeGoaway(this.output, MAX_STREAM_ID, NO_ERROR);
    writePing(this.output, 0, DRAINING);
    this.wantFlush();
  }

  /** Ends the connection at once. */
  destroy(): void {
    this.socket.destroy();
  }

  /** Enforces the time bounds of the connection and of each stream. */
  sweep(nowMs: number): void {
    if (this.#isOver) return;
    if (this.#isFailed) {
      if (nowMs - this.#failedAtMs > MAX_FAREWELL_MS) this.socket.destroy();
      return;
    }
    if (!this.#isGreeted && nowMs - this.#begunMs > MAX_GREETING_MS) {
      this.#fail(SETTINGS_TIMEOUT);
      return;
    }
    if (this.#isStalled(nowMs)) {
      this.#cut();
      return;
    }
    if (this.#drainingSinceMs !== undefined && nowMs - this.#drainingSinceMs > MAX_FAREWELL_MS) this.#leave();
    this.nowMs = nowMs;
    this.#settle();
    if (this.#waiting.size > 0) this.wantFlush();
    for (const stream of this.#streams.values()) stream.sweep(nowMs);
  }

  /** Processes one frame. Called by the splitter. */
  frame(bytes: Buffer, at: number, length: number): number {
    const type = bytes[at + 3] ?? 0;
    const flags = bytes[at + 4] ?? 0;
    const id = readUint31(bytes, at + 5);
    const start = at + FRAME_HEAD_BYTES;
    // Section 3.4
    if (!this.#hasSettings && (type !== SETTINGS_FRAME || (flags & ACK) !== 0)) return PROTOCOL_ERROR;
    // Section 6.10
    if (this.#blocks.openStream !== 0 && (type !== CONTINUATION || id !== this.#blocks.openStream))
      return PROTOCOL_ERROR;
    switch (type) {
      case DATA:
        return this.#data(id, flags, bytes, start, length);
      case HEADERS:
        return this.#headers(id, flags, bytes, start, length);
      case CONTINUATION:
        return this.#continuation(id, flags, bytes, start, length);
      case RST_STREAM:
        return this.#peerReset(id, length);
      case WINDOW_UPDATE:
        return this.#windowUpdate(id, bytes, start, length);
      case SETTINGS_FRAME:
        return this.#settings(id, flags, bytes, start, length);
      case PING:
        return this.#pinged(id, flags, bytes, start, length);
      case PRIORITY:
        return this.#priority(id, bytes, start, length);
      case GOAWAY:
        return id === 0 ? this.#countControl(1) : PROTOCOL_ERROR;
      case PUSH_PROMISE:
        return PROTOCOL_ERROR;
      default:
        // Section 5.5: unknown types are ignored.
        return this.#countControl(1);
    }
  }

  #read(bytes: Buffer): void {
    if (this.#isOver || this.#isFailed) return;
    this.nowMs = this.#parts.nowMs();
    this.#isReading = true;
    try {
      const error = this.#splitter.push(bytes);
      this.#runReady();
      if (error === NO_ERROR) this.#endTurn();
      else this.#fail(error);
    } catch {
      this.#fail(INTERNAL_ERROR);
    } finally {
      this.#isReading = false;
    }
  }

  #runReady(): void {
    const ready = this.#ready;
    if (ready.length === 0) return;
    for (let i = 0; i < ready.length; i++) ready[i]?.run();
    ready.length = 0;
  }

  #flushLater(): void {
    this.#willFlush = false;
    if (!(this.#isOver || this.#isFailed || this.#isReading)) this.#endTurn();
  }

  /** Writes everything that the turn caused. */
  #endTurn(): void {
    // A socket that was ended or destroyed accepts no bytes, and its `close` event follows.
    if (!this.socket.writable) return;
    if (this.#unfinishedPeers.length > 0) this.#stopPeers();
    // While the socket accepts everything at once, there may be room for more waiting bytes. Otherwise, its `drain`
    // event continues the writing.
    let mayGoOn = true;
    let hasMore = true;
    while (mayGoOn && hasMore) {
      hasMore = this.#waiting.size > 0 && this.#waiting.pump(this);
      mayGoOn = this.output.flush();
    }
    if (!mayGoOn) this.socket.pause();
    if (this.#untaken.length > 0) this.#settle();
    if (this.#lastServed !== undefined && this.#streams.size === 0) this.socket.end();
  }

  /** Called when the socket has sent all its bytes. */
  #drained(): void {
    if (this.#isOver || this.#isFailed) return;
    this.socket.resume();
    this.#endTurn();
  }

  #stopPeers(): void {
    for (const stream of this.#unfinishedPeers)
      if (stream.localEnded && !stream.remoteEnded) this.reset(stream, NO_ERROR);
    this.#unfinishedPeers.length = 0;
  }

  #settle(): void {
    if (this.#untaken.length === 0 || !this.output.isTaken) return;
    const untaken = this.#untaken;
    this.#untaken = [];
    for (const stream of untaken) stream.settled(true);
  }

  #isStalled(nowMs: number): boolean {
    const { socket } = this;
    const taken = socket.bytesWritten - socket.writableLength;
    if (socket.writableLength === 0 || taken !== this.#bytesTaken) {
      this.#bytesTaken = taken;
      this.#stalledSinceMs = nowMs;
      return false;
    }
    return nowMs - this.#stalledSinceMs > MAX_STALL_MS;
  }

  /** Section 6.1 */
  #data(id: number, flags: number, bytes: Buffer, from: number, length: number): number {
    if (id === 0) return PROTOCOL_ERROR;
    let start = from;
    let end = from + length;
    if ((flags & PADDED) !== 0) {
      const padding = bytes[start] ?? 0;
      if (padding >= length) return PROTOCOL_ERROR;
      start += 1;
      end -= padding;
    }
    // Padding counts, and so does the content of a closed stream (section 6.9.1).
    this.#receiveWindow -= length;
    if (this.#receiveWindow < 0) return FLOW_CONTROL_ERROR;
    if (this.#receiveWindow < CONNECTION_WINDOW / 2) {
      writeWindowUpdate(this.output, 0, CONNECTION_WINDOW - this.#receiveWindow);
      this.#receiveWindow = CONNECTION_WINDOW;
    }
    const isLast = (flags & END_STREAM) !== 0;
    const stream = this.#streams.get(id);
    if (stream === undefined || stream.remoteEnded) return this.#lateData(id, length, stream);
    if (start === end && !isLast) {
      const flood = this.#countControl(1);
      if (flood !== NO_ERROR) return flood;
    }
    if (stream.contentLeft >= 0) {
      stream.contentLeft -= end - start;
      // Section 8.1.1
      if (stream.contentLeft < 0 || (isLast && stream.contentLeft > 0))
        return this.#streamError(stream.id, PROTOCOL_ERROR);
    }
    stream.receiveWindow -= length;
    if (stream.receiveWindow < 0) return this.#streamError(stream.id, FLOW_CONTROL_ERROR);
    if (end > start) stream.take(bytes, start, end);
    if (isLast) this.#endPeer(stream);
    else if (stream.receiveWindow < STREAM_WINDOW / 2 && !(stream.isOver || stream.localEnded)) {
      writeWindowUpdate(this.output, id, STREAM_WINDOW - stream.receiveWindow);
      stream.receiveWindow = STREAM_WINDOW;
    }
    return NO_ERROR;
  }

  /** Sections 6.2 and 4.3 */
  #headers(id: number, flags: number, bytes: Buffer, from: number, length: number): number {
    if (id % 2 === 0) return PROTOCOL_ERROR;
    let start = from;
    let end = from + length;
    if ((flags & PADDED) !== 0) {
      end -= bytes[start] ?? 0;
      start += 1;
    }
    if ((flags & HAS_PRIORITY) !== 0) {
      // Section 5.3.1 of RFC 7540, which RFC 9113 deprecates: no stream depends on itself.
      if (start + 5 <= end && readUint31(bytes, start) === id) return PROTOCOL_ERROR;
      start += 5;
    }
    if (start > end) return PROTOCOL_ERROR;
    const isLast = (flags & END_STREAM) !== 0;
    if ((flags & END_HEADERS) !== 0) return this.#block(id, isLast, bytes, start, end);
    this.#blockEndsStream = isLast;
    return this.#blocks.add(id, bytes, start, end);
  }

  /** Section 6.10 */
  #continuation(id: number, flags: number, bytes: Buffer, start: number, length: number): number {
    if (id === 0 || id !== this.#blocks.openStream) return PROTOCOL_ERROR;
    const error = this.#blocks.add(id, bytes, start, start + length);
    if (error !== NO_ERROR || (flags & END_HEADERS) === 0) return error;
    const block = this.#blocks.take();
    return this.#block(id, this.#blockEndsStream, block, 0, block.length);
  }

  #block(id: number, isLast: boolean, bytes: Buffer, start: number, end: number): number {
    if (id <= this.#lastId) return this.#trailers(id, isLast, bytes, start, end);
    this.#lastId = id;
    const target = this.#blocks.readRequest(bytes, start, end);
    if (typeof target === 'number') {
      if (target < 0) return BROKEN_BLOCK;
      // A header list that is too large violates no rule, and may come from a client of the peer. Trailers come from
      // the peer itself.
      return target === ENHANCE_YOUR_CALM
        ? this.#streamError(id, target, 'takesLargeHead')
        : this.#streamError(id, target);
    }
    // Sections 6.8 and 5.1.2
    if (this.#lastServed !== undefined) return this.#countControl(1);
    if (isLast && target.contentLength > 0) return this.#streamError(id, PROTOCOL_ERROR);
    this.#conduct.permitControl();
    if (this.#streams.size >= MAX_STREAMS || !this.#conduct.mayOpen(target.kind, this.nowMs)) {
      this.#parts.counts.refusedStreams += 1;
      return this.#refuse(id);
    }
    const stream = target.open(this, id);
    this.#streams.set(id, stream);
    if (isLast) this.#endPeer(stream);
    return NO_ERROR;
  }

  /** A second block on a stream ends it (section 8.1). */
  #trailers(id: number, isLast: boolean, bytes: Buffer, start: number, end: number): number {
    const code = this.#blocks.readTrailers(bytes, start, end);
    if (code < 0) return BROKEN_BLOCK;
    const stream = this.#streams.get(id);
    if (stream === undefined) {
      if (this.#conduct.wasReset(id)) return this.#countControl(1);
      // The last stream is closed; a lower number may never have been open (section 5.1.1).
      return id === this.#lastId ? STREAM_CLOSED : PROTOCOL_ERROR;
    }
    if (stream.remoteEnded) return this.#streamError(id, STREAM_CLOSED);
    if (code !== NO_ERROR || !isLast || stream.contentLeft > 0) return this.#streamError(id, code || PROTOCOL_ERROR);
    this.#endPeer(stream);
    return NO_ERROR;
  }

  #endPeer(stream: Stream): void {
    if (stream.isOver) return;
    stream.remoteEnded = true;
    stream.ended();
    if (stream.localEnded) this.forget(stream);
  }

  /**
   * Processes DATA for a stream that accepts none. The content of a stream that this server refused may still arrive.
   */
  #lateData(id: number, length: number, stream: Stream | undefined): number {
    if (this.#isIdle(id)) return PROTOCOL_ERROR;
    if (stream === undefined && (this.#conduct.wasReset(id) || this.#isIgnored(id)))
      return length > 0 ? NO_ERROR : this.#countControl(1);
    return this.#streamError(id, STREAM_CLOSED);
  }

  /** Section 6.4 */
  #peerReset(id: number, length: number): number {
    if (length !== 4) return FRAME_SIZE_ERROR;
    if (id === 0 || this.#isIdle(id)) return PROTOCOL_ERROR;
    const stream = this.#streams.get(id);
    if (stream === undefined) return this.#countControl(1);
    if (!stream.localEnded) this.#conduct.countReset(stream.kind, this.nowMs);
    this.forget(stream);
    return NO_ERROR;
  }

  /** Section 6.9 */
  #windowUpdate(id: number, bytes: Buffer, start: number, length: number): number {
    if (length !== 4) return FRAME_SIZE_ERROR;
    const flood = this.#countControl(1);
    if (flood !== NO_ERROR) return flood;
    const increment = readUint31(bytes, start);
    if (id === 0) {
      if (increment === 0) return PROTOCOL_ERROR;
      this.sendWindow += increment;
      return this.sendWindow > MAX_WINDOW ? FLOW_CONTROL_ERROR : NO_ERROR;
    }
    if (this.#isIdle(id)) return PROTOCOL_ERROR;
    if (increment === 0) return this.#streamError(id, PROTOCOL_ERROR);
    const stream = this.#streams.get(id);
    if (stream === undefined) return NO_ERROR;
    stream.sendWindow += increment;
    return stream.sendWindow > MAX_WINDOW ? this.#streamError(id, FLOW_CONTROL_ERROR) : NO_ERROR;
  }

  /** Section 6.5 */
  #settings(id: number, flags: number, bytes: Buffer, start: number, length: number): number {
    if (id !== 0) return PROTOCOL_ERROR;
    if ((flags & ACK) !== 0) {
      if (length !== 0) return FRAME_SIZE_ERROR;
      if (this.#isGreeted) return this.#countControl(1);
      this.#isGreeted = true;
      this.#blocks.closeTable();
      return NO_ERROR;
    }
    const flood = this.#countControl(SETTINGS_COST);
    if (flood !== NO_ERROR) return flood;
    this.#hasSettings = true;
    const before = this.peer.initialWindow;
    const error = this.peer.take(bytes, start, length);
    if (error !== NO_ERROR) return error;
    const change = this.peer.initialWindow - before;
    if (change !== 0) {
      // Section 6.9.2
      for (const stream of this.#streams.values()) {
        stream.sendWindow += change;
        if (stream.sendWindow > MAX_WINDOW) return FLOW_CONTROL_ERROR;
      }
    }
    writeSettingsAck(this.output);
    return NO_ERROR;
  }

  /** Section 6.7 */
  #pinged(id: number, flags: number, bytes: Buffer, start: number, length: number): number {
    if (id !== 0) return PROTOCOL_ERROR;
    if (length !== PING_BYTES) return FRAME_SIZE_ERROR;
    const flood = this.#countControl(1);
    if (flood !== NO_ERROR) return flood;
    const payload = bytes.subarray(start, start + length);
    if ((flags & ACK) === 0) writePing(this.output, ACK, payload);
    else if (payload.equals(KEEPALIVE)) this.#pingIsOpen = false;
    else if (this.#drainingSinceMs !== undefined && payload.equals(DRAINING)) this.#leave();
    return NO_ERROR;
  }

  /** Section 6.3: deprecated. The server validates and ignores it. */
  #priority(id: number, bytes: Buffer, start: number, length: number): number {
    if (id === 0) return PROTOCOL_ERROR;
    if (length !== 5) return FRAME_SIZE_ERROR;
    if (readUint31(bytes, start) === id) return PROTOCOL_ERROR;
    return this.#countControl(1);
  }

  #countControl(cost: number): number {
    return this.#conduct.takesControl(this.nowMs, cost) ? NO_ERROR : ENHANCE_YOUR_CALM;
  }

  /**
   * Resets one stream, open or not, because of the peer's error. @returns the code for a connection beyond the bound
   */
  #streamError(id: number, code: number, budget: 'takesError' | 'takesLargeHead' = 'takesError'): number {
    if (!this.#conduct[budget](this.nowMs)) return ENHANCE_YOUR_CALM;
    const stream = this.#streams.get(id);
    if (stream === undefined) this.#writeReset(id, code);
    else this.reset(stream, code);
    return NO_ERROR;
  }

  /** Refuses a stream that was not processed, so that its peer may try again (section 8.7). */
  #refuse(id: number): number {
    this.#writeReset(id, REFUSED_STREAM);
    return NO_ERROR;
  }

  /**
   * Reports whether a stream was never open. Even numbers are those of the server, which opens none (section 5.1.1).
   */
  #isIdle(id: number): boolean {
    return id > this.#lastId || id % 2 === 0;
  }

  /**
   * Reports whether a stream has a number above that of the last GOAWAY, so that its peer knows that it is not served.
   */
  #isIgnored(id: number): boolean {
    return this.#lastServed !== undefined && id > this.#lastServed;
  }

  /** Sends the last GOAWAY of a connection that drains. */
  #leave(): void {
    if (this.#lastServed !== undefined) return;
    this.#lastServed = this.#lastId;
    writeGoaway(this.output, this.#lastId, NO_ERROR);
    this.wantFlush();
  }

  /** Section 5.4.1 */
  #fail(code: number): void {
    if (this.#isOver || this.#isFailed) return;
    this.#isFailed = true;
    this.#failedAtMs = this.#parts.nowMs();
    if (code === INTERNAL_ERROR) this.#parts.counts.faults += 1;
    else this.#parts.counts.endedConnections += 1;
    writeGoaway(this.output, this.#lastId, code);
    this.output.flush();
    this.#closeStreams();
    // The server reads and discards what the peer still sends, because closing a socket with unread bytes loses the
    // GOAWAY.
    this.socket.resume();
    this.socket.end();
  }

  #cut(): void {
    this.#parts.counts.endedConnections += 1;
    this.socket.destroy();
  }

  #gone(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#closeStreams();
  }

  #closeStreams(): void {
    const untaken = this.#untaken;
    this.#untaken = [];
    for (const stream of untaken) stream.settled(false);
    this.#ready.length = 0;
    for (const stream of this.#streams.values()) this.forget(stream);
  }

  #writeReset(id: number, code: number): void {
    writeReset(this.output, id, code);
    this.#conduct.noteReset(id);
    this.wantFlush();
  }
}

function ignore(): void {
  // A socket's error is followed by its `close`.
}
