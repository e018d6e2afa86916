/** The rules of RFC 9113 that a peer keeps or breaks, frame by frame. */

import { afterEach, describe, expect, test } from 'vitest';
import { frame } from '../../../src/extauthz/grpc/messages.ts';
import { encodeFields } from '../../../src/extauthz/http2/hpack-encode.ts';
import {
  ACK,
  callOf,
  connectFrames,
  END_HEADERS,
  END_STREAM,
  FRAME,
  frameOf,
  headersOf,
  PREFACE,
  requestBlock,
  resetOf,
  uint32,
} from '../support/frame-peer.ts';
import { frameStage, setting } from '../support/frame-stage.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});
const stage = () => frameStage(cleanups);

const ECHO = '/t.S/Echo';
const HELLO = frame(Buffer.from('hello'));
const PADDED = 8;
const PRIORITY = 0x20;
const GOOD = { grpc: '0', body: HELLO, reset: undefined };

describe('a call', () => {
  test('is the same with padding, a priority, and a block in three frames', async () => {
    const on = await stage();
    const peer = await on.peer();
    const block = requestBlock(ECHO);
    const [one, two] = [peer.nextStream(), peer.nextStream()];
    peer.write(
      frameOf(
        FRAME.headers,
        END_HEADERS | PADDED | PRIORITY,
        one,
        Buffer.concat([Buffer.of(7), uint32(0), Buffer.of(16), block, Buffer.alloc(7)]),
      ),
      frameOf(FRAME.data, END_STREAM | PADDED, one, Buffer.concat([Buffer.of(3), HELLO, Buffer.alloc(3)])),
      frameOf(FRAME.headers, 0, two, block.subarray(0, 5)),
      frameOf(FRAME.continuation, 0, two, block.subarray(5, 9)),
      frameOf(FRAME.continuation, END_HEADERS, two, block.subarray(9)),
      frameOf(FRAME.data, 0, two, HELLO.subarray(0, 3)),
      frameOf(FRAME.data, 0, two, HELLO.subarray(3)),
      // Its end is a block of trailers.
      frameOf(FRAME.headers, END_HEADERS | END_STREAM, two, encodeFields([['x-trailer', '1']])),
    );
    expect([await peer.end(one), await peer.end(two)]).toMatchObject([GOOD, GOOD]);
  });

  test('may refer to the header table until the peer has acknowledged that there is none', async () => {
    const on = await stage();
    const peer = await on.peer();
    peer.isPolite = false;
    const path = Buffer.concat([Buffer.of(0x44, ECHO.length), Buffer.from(ECHO)]);
    const rest = encodeFields([
      [':method', 'POST'],
      [':scheme', 'http'],
      ['content-type', 'application/grpc'],
    ]);
    const call = (start: Buffer): Promise<unknown> => {
      const id = peer.nextStream();
      peer.write(
        frameOf(FRAME.headers, END_HEADERS, id, Buffer.concat([start, rest])),
        frameOf(FRAME.data, END_STREAM, id, HELLO),
      );
      return peer.end(id);
    };
    expect(await call(path)).toMatchObject(GOOD);
    expect(await call(Buffer.of(0xbe))).toMatchObject(GOOD);
    peer.write(frameOf(FRAME.settings, ACK, 0));
    expect(await call(Buffer.concat([Buffer.of(0x20), path]))).toMatchObject(GOOD);
    void call(Buffer.of(0xbe));
    await peer.closed();
    expect(peer.goaway).toBe(9);
  });

  test('is answered with as many bytes as the windows of its stream and of the connection permit', async () => {
    const on = await stage();
    const peer = await on.peer(setting(4, 4));
    peer.isPolite = false;
    peer.write(frameOf(FRAME.settings, ACK, 0));
    const [one, two] = [peer.nextStream(), peer.nextStream()];
    peer.write(callOf(one, ECHO, HELLO), callOf(two, ECHO, HELLO));
    await peer.settled();
    const bytesOf = (stream: number): number =>
      peer.received.reduce(
        (sum, { type, stream: of, payload }) => (type === 0 && of === stream ? sum + payload.length : sum),
        0,
      );
    expect([bytesOf(one), bytesOf(two)]).toEqual([4, 4]);
    peer.write(frameOf(FRAME.window, 0, two, uint32(1)));
    await peer.settled();
    expect([bytesOf(one), bytesOf(two)]).toEqual([4, 5]);
    // The window of a stream may be negative (section 6.9.2).
    peer.write(frameOf(FRAME.settings, 0, 0, setting(4, 0)), frameOf(FRAME.window, 0, one, uint32(4)));
    await peer.settled();
    expect([bytesOf(one), bytesOf(two)]).toEqual([4, 5]);
    peer.write(frameOf(FRAME.settings, 0, 0, setting(4, 100)));
    expect([await peer.end(one), await peer.end(two)]).toMatchObject([GOOD, GOOD]);
  });

  test("whose answer is longer than the connection's window waits for it, and small answers share what is left", async () => {
    const on = await stage();
    const peer = await on.peer(setting(4, 1_000_000));
    peer.isPolite = false;
    peer.write(frameOf(FRAME.settings, ACK, 0));
    const [one, two] = [peer.nextStream(), peer.nextStream()];
    const large = frame(Buffer.alloc(70_000, 1));
    peer.write(headersOf(one, ECHO));
    for (let at = 0; at < large.length; at += 10_000) {
      const piece = large.subarray(at, at + 10_000);
      peer.write(frameOf(FRAME.data, at + 10_000 >= large.length ? END_STREAM : 0, one, piece));
    }
    peer.write(callOf(two, ECHO, HELLO));
    await peer.settled();
    const sent = peer.received.reduce((sum, { type, payload }) => (type === 0 ? sum + payload.length : sum), 0);
    expect(sent).toBe(65_535);
    peer.write(frameOf(FRAME.window, 0, 0, uint32(100_000)));
    expect((await peer.end(one)).body.equals(large)).toBe(true);
    expect(await peer.end(two)).toMatchObject(GOOD);
    expect(peer.received.every(({ payload }) => payload.length <= 16_384)).toBe(true);
  });

  test('that is reset in the read that brought it is not decided', async () => {
    const on = await stage();
    const peer = await on.peer();
    await peer.settled();
    const [one, two] = [peer.nextStream(), peer.nextStream()];
    peer.write(callOf(one, ECHO, HELLO), resetOf(one), callOf(two, ECHO, frame(Buffer.from('two'))));
    await peer.end(two);
    expect([on.seen, on.server.stats.cancelled]).toEqual([['two'], 1]);
  });

  test('keeps its message while its answer waits, for any later frames of the same connection', async () => {
    const on = await stage();
    const peer = await on.peer();
    const first = peer.call('/t.S/Held', HELLO);
    await expect.poll(() => on.held.length).toBe(1);
    for (let i = 0; i < 50; i++) await peer.call(ECHO, frame(Buffer.alloc(3000, i)));
    on.held[0]?.resolve(Buffer.from('late'));
    expect(await first).toMatchObject({ grpc: '0', body: frame(Buffer.from('late')) });
  });
});

describe('an error of the peer that ends the connection', () => {
  const block = requestBlock(ECHO);
  test.each<[string, number, Buffer[]]>([
    ['DATA without a stream', 1, [frameOf(FRAME.data, 0, 0, HELLO)]],
    ['DATA of a stream that is not open', 1, [frameOf(FRAME.data, 0, 1, HELLO)]],
    ['padding longer than the frame', 1, [headersOf(1, ECHO), frameOf(FRAME.data, PADDED, 1, Buffer.of(5, 0, 0))]],
    ['HEADERS without a stream', 1, [frameOf(FRAME.headers, END_HEADERS, 0, block)]],
    ['a stream with an even number', 1, [frameOf(FRAME.headers, END_HEADERS, 2, block)]],
    ['a stream that is older than one before', 1, [headersOf(5, ECHO), headersOf(3, ECHO)]],
    [
      'a stream that depends on itself',
      1,
      [frameOf(FRAME.headers, END_HEADERS | PRIORITY, 1, Buffer.concat([uint32(1), Buffer.of(0), block]))],
    ],
    ['a priority that does not fit', 1, [frameOf(FRAME.headers, END_HEADERS | PRIORITY, 1, Buffer.alloc(3))]],
    ['a broken block', 9, [frameOf(FRAME.headers, END_HEADERS, 1, Buffer.of(0x80))]],
    ['CONTINUATION without HEADERS', 1, [frameOf(FRAME.continuation, END_HEADERS, 1, block)]],
    [
      'another frame within a block',
      1,
      [frameOf(FRAME.headers, 0, 1, block), frameOf(FRAME.ping, 0, 0, Buffer.alloc(8))],
    ],
    [
      'CONTINUATION of another stream',
      1,
      [frameOf(FRAME.headers, 0, 1, block), frameOf(FRAME.continuation, END_HEADERS, 3, block)],
    ],
    ['RST_STREAM of a stream that is not open', 1, [resetOf(1)]],
    ['RST_STREAM of a stream with an even number', 1, [headersOf(5, ECHO), resetOf(2)]],
    ['WINDOW_UPDATE of a stream with an even number', 1, [headersOf(5, ECHO), frameOf(FRAME.window, 0, 4, uint32(1))]],
    ['DATA of a stream with an even number', 1, [headersOf(5, ECHO), frameOf(FRAME.data, 0, 2, HELLO)]],
    ['RST_STREAM of 5 bytes', 6, [headersOf(1, ECHO), frameOf(FRAME.reset, 0, 1, Buffer.alloc(5))]],
    ['SETTINGS of 5 bytes', 6, [frameOf(FRAME.settings, 0, 0, Buffer.alloc(5))]],
    ['SETTINGS on a stream', 1, [frameOf(FRAME.settings, 0, 1)]],
    ['an acknowledgement of settings with content', 6, [frameOf(FRAME.settings, ACK, 0, Buffer.alloc(6))]],
    ['a window of 2^31', 3, [frameOf(FRAME.settings, 0, 0, setting(4, 2 ** 31))]],
    ['PING of 7 bytes', 6, [frameOf(FRAME.ping, 0, 0, Buffer.alloc(7))]],
    ['PING on a stream', 1, [frameOf(FRAME.ping, 0, 1, Buffer.alloc(8))]],
    ['PRIORITY of 4 bytes', 6, [frameOf(FRAME.priority, 0, 1, Buffer.alloc(4))]],
    ['PRIORITY without a stream', 1, [frameOf(FRAME.priority, 0, 0, Buffer.alloc(5))]],
    ['PUSH_PROMISE', 1, [frameOf(FRAME.push, END_HEADERS, 1, block)]],
    ['GOAWAY on a stream', 1, [frameOf(FRAME.goaway, 0, 1, Buffer.alloc(8))]],
    ['an increment of 0', 1, [frameOf(FRAME.window, 0, 0, uint32(0))]],
    ['WINDOW_UPDATE of 3 bytes', 6, [frameOf(FRAME.window, 0, 0, Buffer.alloc(3))]],
    ['a connection window beyond 2^31 - 1', 3, [frameOf(FRAME.window, 0, 0, uint32(0x7fffffff))]],
    ['WINDOW_UPDATE of a stream that is not open', 1, [frameOf(FRAME.window, 0, 1, uint32(1))]],
    [
      'HEADERS on the last stream, which is closed',
      5,
      [callOf(1, ECHO, HELLO), frameOf(FRAME.ping, 0, 0, Buffer.alloc(8)), headersOf(1, ECHO)],
    ],
  ])('%s ends with GOAWAY %i', async (_name, code, frames) => {
    const on = await stage();
    const peer = await on.peer();
    const other = await on.peer();
    // In reads of their own, so that what closes a stream comes before what follows.
    for (const each of frames) {
      peer.write(each);
      await new Promise(setImmediate);
    }
    await peer.closed();
    expect(peer.goaway).toBe(code);
    expect(await other.call(ECHO, HELLO)).toMatchObject(GOOD);
  });

  test.each<[string, Buffer]>([
    ['no preface', Buffer.from('GET / HTTP/1.1\r\nhost: x\r\n\r\n')],
    ['a first frame other than SETTINGS', Buffer.concat([PREFACE, frameOf(FRAME.ping, 0, 0, Buffer.alloc(8))])],
    ['an acknowledgement before SETTINGS', Buffer.concat([PREFACE, frameOf(FRAME.settings, ACK, 0)])],
  ])('%s ends with GOAWAY 1', async (_name, bytes) => {
    const on = await stage();
    const { connect } = await import('node:net');
    const socket = connect(on.server.port, '127.0.0.1');
    const { FramePeer } = await import('../support/frame-peer.ts');
    const peer = new FramePeer(socket);
    peer.write(bytes);
    await peer.closed();
    expect(peer.goaway).toBe(1);
  });
});

describe('an error of the peer that ends the stream', () => {
  const withLength = (length: string): Buffer =>
    frameOf(FRAME.headers, END_HEADERS, 1, requestBlock(ECHO, [['content-length', length]]));
  test.each<[string, number, Buffer[]]>([
    ['a malformed request', 1, [frameOf(FRAME.headers, END_HEADERS, 1, encodeFields([[':method', 'POST']]))]],
    ['upper case in a name', 1, [frameOf(FRAME.headers, END_HEADERS, 1, requestBlock(ECHO, [['X', 'y']]))]],
    ['more content than announced', 1, [withLength('3'), frameOf(FRAME.data, 0, 1, HELLO)]],
    ['less content than announced', 1, [withLength('300'), frameOf(FRAME.data, END_STREAM, 1, HELLO)]],
    [
      'no content where some is announced',
      1,
      [frameOf(FRAME.headers, END_HEADERS | END_STREAM, 1, requestBlock(ECHO, [['content-length', '3']]))],
    ],
    [
      'trailers that do not end it',
      1,
      [headersOf(1, ECHO), frameOf(FRAME.headers, END_HEADERS, 1, encodeFields([['a', 'b']]))],
    ],
    [
      'trailers with a pseudo-header',
      1,
      [headersOf(1, ECHO), frameOf(FRAME.headers, END_HEADERS | END_STREAM, 1, encodeFields([[':path', '/']]))],
    ],
    ['an increment of 0', 1, [headersOf(1, ECHO), frameOf(FRAME.window, 0, 1, uint32(0))]],
    ['a window beyond 2^31 - 1', 3, [headersOf(1, ECHO), frameOf(FRAME.window, 0, 1, uint32(0x7fffffff))]],
    ['a header list of 40 KiB', 11, [largeHeaders()]],
    ['DATA behind its end', 5, [callOf(1, '/t.S/Held', HELLO), frameOf(FRAME.data, 0, 1, HELLO)]],
    [
      'HEADERS behind its end',
      5,
      [callOf(1, '/t.S/Held', HELLO), frameOf(FRAME.headers, END_HEADERS | END_STREAM, 1, encodeFields([]))],
    ],
  ])('%s ends with RST_STREAM, and the connection stays open', async (_name, code, frames) => {
    const on = await stage();
    const peer = await on.peer();
    await peer.settled();
    peer.write(...frames);
    expect((await peer.end(1)).reset).toBe(code);
    peer.nextStream();
    expect(await peer.call(ECHO, HELLO)).toMatchObject(GOOD);
    expect(peer.goaway).toBeUndefined();
    expect(on.server.stats.open).toBe(0);
  });

  /** A list of 40 KiB, in as many frames as it needs. */
  function largeHeaders(): Buffer {
    const block = requestBlock(
      ECHO,
      Array.from({ length: 20 }, (_, i) => [`x-${i}`, 'v'.repeat(2048)] as const),
    );
    const frames = [frameOf(FRAME.headers, 0, 1, block.subarray(0, 16_384))];
    for (let at = 16_384; at < block.length; at += 16_384) {
      frames.push(
        frameOf(FRAME.continuation, at + 16_384 >= block.length ? END_HEADERS : 0, 1, block.subarray(at, at + 16_384)),
      );
    }
    return Buffer.concat(frames);
  }
});

describe('frames without a request', () => {
  test('of unknown types, flags and settings are ignored, pings and settings are answered', async () => {
    const on = await stage();
    const peer = await on.peer();
    await peer.settled();
    peer.write(
      frameOf(0x50, 0xff, 3, Buffer.alloc(20)),
      frameOf(FRAME.settings, 0, 0, setting(0xfafa, 1)),
      frameOf(FRAME.ping, 0xfe, 0, Buffer.from('12345678')),
      frameOf(FRAME.goaway, 0, 0, Buffer.alloc(8)),
    );
    expect(await peer.call(ECHO, HELLO)).toMatchObject(GOOD);
    const pings = peer.received.filter(({ type, flags }) => type === FRAME.ping && flags === ACK);
    expect(pings.map(({ payload }) => String(payload))).toEqual(['settled?', 'settled?', '12345678']);
    expect(peer.received.filter(({ type, flags }) => type === FRAME.settings && flags === ACK)).toHaveLength(2);
  });
});

describe('a server that drains', () => {
  test('serves what comes before its peer has read of it, and names the last stream then', async () => {
    const on = await stage();
    const peer = await on.peer();
    peer.isPolite = false;
    peer.write(frameOf(FRAME.settings, ACK, 0));
    await peer.settled();
    const running = peer.call('/t.S/Held', HELLO);
    await expect.poll(() => on.held.length).toBe(1);
    const drained = on.server.drain(60_000);
    await expect.poll(() => peer.received.filter(({ type }) => type === FRAME.goaway).length).toBe(1);
    const [first] = peer.received.filter(({ type }) => type === FRAME.goaway);
    expect(first?.payload.readUInt32BE(0)).toBe(0x7fffffff);
    const late = peer.call(ECHO, HELLO);
    expect(await late).toMatchObject(GOOD);
    const ping = peer.received.find(({ type, flags }) => type === FRAME.ping && flags === 0);
    peer.write(frameOf(FRAME.ping, ACK, 0, ping?.payload ?? Buffer.alloc(8)));
    await expect.poll(() => peer.received.filter(({ type }) => type === FRAME.goaway).length).toBe(2);
    const [, second] = peer.received.filter(({ type }) => type === FRAME.goaway);
    expect([second?.payload.readUInt32BE(0), second?.payload.readUInt32BE(4)]).toEqual([3, 0]);
    peer.write(callOf(peer.nextStream(), ECHO, frame(Buffer.from('too late'))));
    await peer.settled();
    expect(on.seen).toEqual(['hello']);
    on.held[0]?.resolve(Buffer.from('done'));
    expect((await running).grpc).toBe('0');
    await Promise.all([peer.closed(), drained]);
    await expect(connectFrames(on.server.port)).rejects.toThrow('ECONNREFUSED');
  });

  test('does not wait longer than a second for a peer that answers no ping', async () => {
    const on = await stage();
    const peer = await on.peer();
    await peer.settled();
    peer.isPolite = false;
    const drained = on.server.drain(60_000);
    await expect.poll(() => peer.received.filter(({ type }) => type === FRAME.goaway).length).toBe(1);
    on.pass(1001);
    await Promise.all([peer.closed(), drained]);
    expect(peer.received.filter(({ type }) => type === FRAME.goaway)).toHaveLength(2);
  });
});
