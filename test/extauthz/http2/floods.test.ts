/** Peers that send too much, too little, or do not read: each has a bound, and others do not notice. */

import { once } from 'node:events';
import { connect } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { frame } from '../../../src/extauthz/grpc/messages.ts';
import {
  CONTROL_FRAMES,
  LARGE_HEADS,
  MAX_CONNECTIONS,
  MAX_HEADER_FIELDS,
  MAX_QUEUED_BYTES,
  MAX_STREAMS,
  RESETS,
  SETTINGS_COST,
  STREAM_ERRORS,
} from '../../../src/extauthz/http2/bounds.ts';
import { encodeFields } from '../../../src/extauthz/http2/hpack-encode.ts';
import { Http2Listener } from '../../../src/extauthz/http2/listener.ts';
import {
  ACK,
  callOf,
  END_HEADERS,
  END_STREAM,
  FRAME,
  type FramePeer,
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
const GOOD = { grpc: '0', body: HELLO };
const ENHANCE_YOUR_CALM = 11;
const REFUSED_STREAM = 7;

/** Writes a frame many times, in packets of 1000. */
function flood(peer: FramePeer, count: number, bytes: Buffer): void {
  for (let left = count; left > 0; left -= 1000)
    peer.write(Buffer.concat(Array.from({ length: Math.min(left, 1000) }, () => bytes)));
}

describe('a flood of', () => {
  test.each<[string, Buffer, number]>([
    ['pings', frameOf(FRAME.ping, 0, 0, Buffer.alloc(8)), 1],
    ['answers to pings', frameOf(FRAME.ping, ACK, 0, Buffer.alloc(8)), 1],
    ['settings', frameOf(FRAME.settings, 0, 0, setting(4, 70_000)), SETTINGS_COST],
    ['empty settings', frameOf(FRAME.settings, 0, 0), SETTINGS_COST],
    ['acknowledgements of settings', frameOf(FRAME.settings, ACK, 0), 1],
    ['priorities', frameOf(FRAME.priority, 0, 5, Buffer.alloc(5)), 1],
    ['window updates', frameOf(FRAME.window, 0, 0, uint32(1)), 1],
    ['unknown frames', frameOf(0x77, 0, 0, Buffer.alloc(10)), 1],
    ['goodbyes', frameOf(FRAME.goaway, 0, 0, Buffer.alloc(8)), 1],
    ['empty DATA on an open stream', frameOf(FRAME.data, 0, 1), 1],
    ['resets of a stream that is closed', resetOf(3), 1],
  ])(
    '%s ends its connection with ENHANCE_YOUR_CALM beyond the bound, and not within it',
    async (_name, bytes, cost) => {
      const on = await stage();
      const [peer, other] = [await on.peer(), await on.peer()];
      peer.write(headersOf(peer.nextStream(), ECHO));
      await peer.call(ECHO, HELLO);
      flood(peer, Math.floor(CONTROL_FRAMES.burst / cost) - 20, bytes);
      expect(await peer.call(ECHO, HELLO)).toMatchObject(GOOD);
      flood(peer, 100, bytes);
      await peer.closed();
      expect(peer.goaway).toBe(ENHANCE_YOUR_CALM);
      expect(await other.call(ECHO, HELLO)).toMatchObject(GOOD);
    },
  );

  test('pings at the permitted rate never ends the connection, and each call permits four control frames', async () => {
    const on = await stage();
    const peer = await on.peer();
    const ping = frameOf(FRAME.ping, 0, 0, Buffer.alloc(8));
    for (let second = 0; second < 5; second++) {
      flood(peer, CONTROL_FRAMES.perSecond - 10, ping);
      await peer.settled();
      on.pass(1000);
    }
    for (let i = 0; i < 3000; i++) {
      // The peer opens a window for each answer besides.
      peer.write(ping, ping, ping);
      expect((await peer.call(ECHO, HELLO)).grpc).toBe('0');
    }
    expect(peer.goaway).toBeUndefined();
  });

  test('CONTINUATION ends its connection after 8 frames, or 64 KiB', async () => {
    const on = await stage();
    for (const [size, count] of [
      [0, 9],
      [16_384, 5],
    ] as const) {
      const peer = await on.peer();
      peer.write(frameOf(FRAME.headers, 0, 1, Buffer.alloc(size, 0x82)));
      for (let i = 0; i < count; i++) peer.write(frameOf(FRAME.continuation, 0, 1, Buffer.alloc(size, 0x82)));
      await peer.closed();
      expect(peer.goaway).toBe(ENHANCE_YOUR_CALM);
    }
  });

  test('streams that break the protocol ends its connection', async () => {
    const on = await stage();
    const peer = await on.peer();
    const bad = encodeFields([[':method', 'POST']]);
    for (let i = 0; i < STREAM_ERRORS.burst; i++)
      peer.write(frameOf(FRAME.headers, END_HEADERS | END_STREAM, peer.nextStream(), bad));
    expect(await peer.call(ECHO, HELLO)).toMatchObject(GOOD);
    peer.write(frameOf(FRAME.headers, END_HEADERS | END_STREAM, peer.nextStream(), bad));
    await peer.closed();
    expect(peer.goaway).toBe(ENHANCE_YOUR_CALM);
  });

  test('header lists that are too large ends only their streams within the bound, and its connection beyond it', async () => {
    const on = await stage();
    const peer = await on.peer();
    const fields = Array.from({ length: MAX_HEADER_FIELDS + 1 }, () => ['a', 'b'] as const);
    const block = requestBlock(ECHO, fields);
    const send = (count: number): void =>
      peer.write(...Array.from({ length: count }, () => frameOf(FRAME.headers, END_HEADERS, peer.nextStream(), block)));
    for (let sent = 0; sent < LARGE_HEADS.burst; sent += 1000) {
      send(1000);
      await peer.settled();
    }
    expect(await peer.call(ECHO, HELLO)).toMatchObject(GOOD);
    expect(peer.goaway).toBeUndefined();
    send(1);
    await peer.closed();
    expect(peer.goaway).toBe(ENHANCE_YOUR_CALM);
  });

  test('trailers that are too large count as violations: no client of Envoy can cause them', async () => {
    const on = await stage();
    const peer = await on.peer();
    const fields = Array.from({ length: MAX_HEADER_FIELDS + 1 }, () => ['a', 'b'] as const);
    const send = (count: number): void =>
      peer.write(
        ...Array.from({ length: count }, () => {
          const id = peer.nextStream();
          return Buffer.concat([
            headersOf(id, ECHO),
            frameOf(FRAME.headers, END_HEADERS | END_STREAM, id, encodeFields(fields)),
          ]);
        }),
      );
    send(STREAM_ERRORS.burst);
    await peer.settled();
    expect(peer.goaway).toBeUndefined();
    send(1);
    await peer.closed();
    expect(peer.goaway).toBe(ENHANCE_YOUR_CALM);
  });

  test('streams beyond 1,024 open ones is refused, stream by stream, and those that are open are answered', async () => {
    const on = await stage();
    const peer = await on.peer();
    const ids = Array.from({ length: MAX_STREAMS }, () => peer.nextStream());
    peer.write(...ids.map((id) => callOf(id, '/t.S/Held', HELLO)));
    await expect.poll(() => on.held.length).toBe(MAX_STREAMS);
    expect((await peer.call(ECHO, HELLO)).reset).toBe(REFUSED_STREAM);
    for (const { resolve } of on.held) resolve(Buffer.from('done'));
    const ends = await Promise.all(ids.map((id) => peer.end(id)));
    expect(ends.every(({ grpc }) => grpc === '0')).toBe(true);
    expect(await peer.call(ECHO, HELLO)).toMatchObject(GOOD);
  });

  test('resets beyond the bound refuses streams of that method only, for as long as it lasts', async () => {
    const on = await stage();
    const peer = await on.peer();
    const log = peer.nextStream();
    peer.write(headersOf(log, '/t.S/Collect'));
    const report = (text: string): void => peer.write(frameOf(FRAME.data, 0, log, frame(Buffer.from(text))));
    report('before');
    const block = requestBlock('/t.S/Held');
    for (let done = 0; done < RESETS.burst; done += 1000) {
      const frames: Buffer[] = [];
      for (let i = 0; i < 1000; i++) {
        const id = peer.nextStream();
        frames.push(frameOf(FRAME.headers, END_HEADERS, id, block), resetOf(id));
      }
      peer.write(...frames);
      await peer.settled();
    }
    expect((await peer.call('/t.S/Held', HELLO)).reset).toBe(REFUSED_STREAM);
    expect(await peer.call(ECHO, HELLO)).toMatchObject(GOOD);
    report('behind');
    await expect.poll(() => on.seen).toEqual(['before', 'hello', 'behind']);
    expect(peer.goaway).toBeUndefined();
    on.pass(100);
    const held = peer.call('/t.S/Held', HELLO);
    await expect.poll(() => on.held.length).toBe(1);
    on.held[0]?.resolve(Buffer.from('done'));
    expect((await held).grpc).toBe('0');
  }, 60_000);
});

describe('a peer that does not read', () => {
  test('is not read from either, and is cut when it has taken nothing for 20 s', async () => {
    const on = await stage();
    const [peer, other] = [await on.peer(setting(4, 0x7fffffff)), await on.peer()];
    await peer.settled();
    peer.write(frameOf(FRAME.window, 0, 0, uint32(0x7ffeffff)));
    await peer.settled();
    peer.socket.pause();
    // Answers of 16 KiB to requests of 80 bytes, until the server takes no more.
    const calls = (): Buffer =>
      Buffer.concat(Array.from({ length: 500 }, () => callOf(peer.nextStream(), '/t.S/Grow', HELLO)));
    let packets = 0;
    while (packets < 4000 && peer.socket.writableLength < 1_000_000) {
      peer.write(calls());
      packets += 1;
      await new Promise(setImmediate);
    }
    expect(packets).toBeLessThan(4000);
    expect(await other.call(ECHO, HELLO)).toMatchObject(GOOD);
    on.pass(0);
    const closed = peer.closed();
    on.pass(20_001);
    peer.socket.resume();
    await closed;
    expect(await other.call(ECHO, HELLO)).toMatchObject(GOOD);
  }, 60_000);

  test('but keeps its windows shut has at most 32 MiB of answers waiting, and those beyond are cancelled', async () => {
    const on = await stage();
    const peer = await on.peer(setting(4, 0));
    const large = frame(Buffer.alloc(1024 * 1024));
    const ids: number[] = [];
    const count = MAX_QUEUED_BYTES / large.length + 4;
    for (let i = 0; i < count; i++) {
      const id = peer.nextStream();
      ids.push(id);
      peer.write(headersOf(id, ECHO));
      for (let at = 0; at < large.length; at += 16_384) {
        peer.write(
          frameOf(FRAME.data, at + 16_384 >= large.length ? END_STREAM : 0, id, large.subarray(at, at + 16_384)),
        );
        if (at % (32 * 16_384) === 0) await peer.settled();
      }
    }
    await peer.settled();
    const resets = peer.received.filter(({ type }) => type === FRAME.reset);
    expect(resets.length).toBeGreaterThanOrEqual(4);
    expect(resets.every(({ payload }) => payload.readUInt32BE(0) === ENHANCE_YOUR_CALM)).toBe(true);
    expect(on.server.stats.open).toBeLessThanOrEqual(32);
    // Their time is over before their peer takes them.
    on.pass(10_000);
    await peer.settled();
    expect(on.server.stats).toMatchObject({ open: 0, unfinishedBytes: 0 });
  }, 60_000);
});

describe('a peer that sends too little', () => {
  test.each([
    ['nothing', Buffer.alloc(0)],
    ['half of the preface', PREFACE.subarray(0, 12)],
    ['the preface without settings', PREFACE],
    ["nothing of the server's settings", Buffer.concat([PREFACE, frameOf(FRAME.settings, 0, 0)])],
  ])('%s is cut after 10 s', async (_name, bytes) => {
    const on = await stage();
    const socket = connect(on.server.port, '127.0.0.1');
    cleanups.push(() => socket.destroy());
    socket.write(bytes);
    await once(socket, 'data');
    on.pass(10_000);
    expect(socket.readableEnded).toBe(false);
    const closed = once(socket.resume(), 'close');
    on.pass(1);
    await closed;
  });

  test('no answer to a ping is cut when the next one is due, and a peer that answers is not', async () => {
    const on = await stage();
    const [dead, alive] = [await on.peer(), await on.peer()];
    await Promise.all([dead.settled(), alive.settled()]);
    dead.isPolite = false;
    on.pass(20_000);
    await expect.poll(() => alive.received.some(({ type, flags }) => type === FRAME.ping && flags === 0)).toBe(true);
    await alive.settled();
    on.pass(20_000);
    await dead.closed();
    expect(await alive.call(ECHO, HELLO)).toMatchObject(GOOD);
  });
});

test('connections beyond the bound are closed at once, and the others stay open', async () => {
  expect(MAX_CONNECTIONS).toBe(4096);
  const listener = new Http2Listener({
    readTarget: () => {
      throw new Error('no request comes');
    },
    tls: undefined,
    nowMs: () => 0,
    maxConnections: 2,
  });
  await listener.listen({ host: '127.0.0.1', port: 0 });
  cleanups.push(() => listener.drain(0));
  const open = [1, 2].map(() => connect(listener.port, '127.0.0.1'));
  for (const socket of open) cleanups.push(() => socket.destroy());
  await Promise.all(open.map((socket) => once(socket, 'data')));
  const third = connect(listener.port, '127.0.0.1').on('error', () => undefined);
  await once(third.resume(), 'close');
  expect(open.map((socket) => socket.readableEnded)).toEqual([false, false]);
  expect(listener.connections.size).toBe(2);
});
