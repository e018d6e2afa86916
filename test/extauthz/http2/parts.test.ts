/** The parts of the HTTP/2 server that need no connection. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Budget } from '../../../src/extauthz/http2/budget.ts';
import { FrameSplitter } from '../../../src/extauthz/http2/frame-splitter.ts';
import { MAX_FRAME_BYTES } from '../../../src/extauthz/http2/frames.ts';
import { HeaderMemo } from '../../../src/extauthz/http2/header-memo.ts';
import { encodeFields } from '../../../src/extauthz/http2/hpack-encode.ts';
import { areTrailers, readRequestHead } from '../../../src/extauthz/http2/request-head.ts';
import { PeerSettings } from '../../../src/extauthz/http2/settings.ts';
import { runs } from '../../support/properties.ts';
import { frameOf, PREFACE } from '../support/frame-peer.ts';

/** Returns the frames that a splitter passes on, and the error that it ends with. */
function split(pieces: readonly Buffer[]): { readonly frames: string[]; readonly error: number } {
  const frames: string[] = [];
  const splitter = new FrameSplitter({
    frame(bytes, at, length) {
      frames.push(bytes.toString('hex', at, at + 9 + length));
      return bytes[at + 3] === 0xee ? 5 : 0;
    },
  });
  for (const piece of pieces) {
    const error = splitter.push(piece);
    if (error !== 0) return { frames, error };
  }
  return { frames, error: 0 };
}

function cut(bytes: Buffer, at: readonly number[]): Buffer[] {
  const places = [...new Set(at.map((place) => place % (bytes.length + 1)))].sort((a, b) => a - b);
  return [0, ...places]
    .map((from, i) => bytes.subarray(from, places[i] ?? bytes.length))
    .filter(({ length }) => length > 0);
}

const frame = fc
  .tuple(
    fc.nat({ max: 20 }),
    fc.nat({ max: 255 }),
    fc.nat({ max: 9 }),
    fc.oneof(fc.nat({ max: 40 }), fc.nat({ max: MAX_FRAME_BYTES })),
  )
  .map(([type, flags, stream, length]) => frameOf(type, flags, stream, Buffer.alloc(length, stream + 1)));

describe('the frame splitter', () => {
  test('passes on the same frames, for any cuts of the bytes', () => {
    const cuts = fc.array(fc.nat({ max: 200_000 }), { maxLength: 30 });
    fc.assert(
      fc.property(fc.array(frame, { maxLength: 6 }), cuts, (frames, at) => {
        const bytes = Buffer.concat([PREFACE, ...frames]);
        expect(split(cut(bytes, at))).toEqual({ frames: frames.map((one) => one.toString('hex')), error: 0 });
      }),
      { numRuns: runs(500) },
    );
  });

  test('passes on the same frames byte by byte, and ends with the error of its reader', () => {
    const bytes = Buffer.concat([PREFACE, frameOf(3, 0, 1, Buffer.alloc(4)), frameOf(0xee, 0, 1), frameOf(4, 0, 0)]);
    const one = split([bytes]);
    expect([one.frames.length, one.error]).toEqual([2, 5]);
    expect(split([...bytes].map((byte) => Buffer.of(byte)))).toEqual(one);
  });

  test('refuses a frame as soon as its head announces more than 16 KiB', () => {
    const head = frameOf(0, 0, 1);
    head.writeUIntBE(MAX_FRAME_BYTES + 1, 0, 3);
    const bytes = Buffer.concat([PREFACE, frameOf(4, 0, 0), head]);
    expect(split([bytes]).error).toBe(6);
    expect(split([...bytes].map((byte) => Buffer.of(byte))).error).toBe(6);
  });

  test('refuses what does not begin with the preface, at its first wrong byte', () => {
    expect(split([Buffer.from('GET / HTTP/1.1\r\n\r\n')]).error).toBe(1);
    expect(split([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\rX')]).error).toBe(1);
    expect(split([Buffer.from('P'), Buffer.from('X')]).error).toBe(1);
    expect(split([Buffer.from('PRI * HT')]).error).toBe(0);
  });

  test('never reuses the memory of a frame: a frame that was kept does not change', () => {
    const kept: Buffer[] = [];
    const splitter = new FrameSplitter({
      frame(bytes, at, length) {
        kept.push(bytes.subarray(at + 9, at + 9 + length));
        return 0;
      },
    });
    const frames = [1, 2, 3, 4].map((stream) => frameOf(0, 0, stream, Buffer.alloc(100, stream)));
    const bytes = Buffer.concat([PREFACE, ...frames]);
    for (const piece of cut(bytes, [60, 160, 250, 380])) splitter.push(Buffer.from(piece));
    expect(kept.map((one) => one.every((byte, _, all) => byte === all[0]))).toEqual([true, true, true, true]);
    expect(kept.map((one) => one[0])).toEqual([1, 2, 3, 4]);
  });
});

describe('the memo of header blocks', () => {
  test('finds a block by all of its bytes or not at all, for any other blocks in it', () => {
    const block = fc
      .uint8Array({ minLength: 0, maxLength: 20 })
      .map((bytes) => Buffer.from(bytes.map((byte) => byte % 3)));
    fc.assert(
      fc.property(fc.array(block, { maxLength: 200 }), (blocks) => {
        const memo = new HeaderMemo<string>();
        for (const bytes of blocks) {
          const text = bytes.toString('hex');
          const found = memo.find(bytes, 0, bytes.length);
          if (found !== undefined) expect(found).toBe(text);
          else memo.keep(bytes, 0, bytes.length, text);
        }
      }),
      { numRuns: runs(300) },
    );
  });

  test('keeps a block that is used, however many others come once', () => {
    const memo = new HeaderMemo<number>();
    const used = Buffer.from('the block of every check');
    memo.keep(used, 0, used.length, 1);
    let missed = 0;
    for (let i = 0; i < 20_000; i++) {
      if (memo.find(used, 0, used.length) === undefined) {
        missed += 1;
        memo.keep(used, 0, used.length, 1);
      }
      const once = Buffer.from(`the block of trace ${i}`);
      memo.keep(once, 0, once.length, 0);
    }
    expect(missed).toBe(0);
  });

  test('keeps a copy, and no block of more than 512 bytes', () => {
    const memo = new HeaderMemo<number>();
    const bytes = Buffer.from('abc');
    memo.keep(bytes, 0, 3, 1);
    bytes.fill('x');
    expect(memo.find(bytes, 0, 3)).toBeUndefined();
    const long = Buffer.alloc(513);
    memo.keep(long, 0, 513, 1);
    expect(memo.find(long, 0, 513)).toBeUndefined();
  });
});

describe('a budget', () => {
  test('permits what a naive count permits', () => {
    const step = fc.record({
      passMs: fc.nat({ max: 2000 }),
      take: fc.integer({ min: 1, max: 12 }),
      give: fc.nat({ max: 3 }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 50 }), (steps) => {
        const budget = new Budget({ burst: 10, perSecond: 2 }, 0);
        let now = 0;
        let taken = 0;
        for (const { passMs, take, give } of steps) {
          now += passMs;
          budget.give(give);
          if (budget.take(now, take)) taken += take;
        }
        const given = steps.reduce((sum, { give }) => sum + give, 0);
        expect(taken).toBeLessThanOrEqual(10 + given + (now * 2) / 1000 + 1e-6);
      }),
    );
    const budget = new Budget({ burst: 3, perSecond: 1 }, 0);
    expect([1, 2, 3, 4].map(() => budget.take(0))).toEqual([true, true, true, false]);
    expect([budget.hasLeft(999), budget.hasLeft(1000), budget.take(1000), budget.take(1000)]).toEqual([
      false,
      true,
      true,
      false,
    ]);
    // The bucket is never fuller than its burst.
    expect([1, 2, 3, 4].map(() => budget.take(60_000))).toEqual([true, true, true, false]);
  });
});

describe('settings of a peer', () => {
  const setting = (id: number, value: number): Buffer => {
    const bytes = Buffer.alloc(6);
    bytes.writeUInt16BE(id, 0);
    bytes.writeUInt32BE(value, 2);
    return bytes;
  };
  const take = (...settings: Buffer[]): number =>
    new PeerSettings().take(Buffer.concat(settings), 0, settings.length * 6);

  test.each([
    ['a push that is neither on nor off', setting(2, 2), 1],
    ['a window of 2^31', setting(4, 2 ** 31), 3],
    ['frames of less than 16 KiB', setting(5, 16_383), 1],
    ['frames of more than 2^24 - 1', setting(5, 2 ** 24), 1],
    ['an unknown one', setting(0xfa, 9), 0],
    ['a table of any size', setting(1, 2 ** 32 - 1), 0],
  ])('with %s end with the right code', (_name, bytes, code) => {
    expect(take(bytes)).toBe(code);
  });

  test('are refused when their length is no multiple of 6, or more than 32 of them', () => {
    expect(new PeerSettings().take(Buffer.alloc(7), 0, 7)).toBe(6);
    expect(take(...Array.from({ length: 33 }, () => setting(0xfa, 1)))).toBe(11);
    expect(take(...Array.from({ length: 32 }, () => setting(0xfa, 1)))).toBe(0);
  });
});

describe('the head of a request', () => {
  const GOOD = [':method', 'POST', ':scheme', 'http', ':path', '/a/B', ':authority', 'x'];

  test('has what a gRPC request says', () => {
    const fields = [
      ...GOOD,
      'content-type',
      'application/grpc',
      'te',
      'trailers',
      'grpc-timeout',
      '5S',
      'content-length',
      '7',
    ];
    expect(readRequestHead(fields)).toEqual({
      method: 'POST',
      path: '/a/B',
      contentType: 'application/grpc',
      timeout: '5S',
      contentLength: 7,
    });
  });

  test.each([
    ['no method', [':scheme', 'http', ':path', '/']],
    ['no scheme', [':method', 'POST', ':path', '/']],
    ['no path', [':method', 'POST', ':scheme', 'http']],
    ['an empty path', [':method', 'POST', ':scheme', 'http', ':path', '']],
    ['a relative path', [':method', 'POST', ':scheme', 'http', ':path', 'a']],
    ['two methods', [...GOOD, ':method', 'GET']],
    ['a pseudo-header of answers', [':status', '200', ...GOOD]],
    ['an unknown pseudo-header', [...GOOD, ':x', 'y']],
    ['a pseudo-header behind a header', [':method', 'POST', 'a', 'b', ':scheme', 'http', ':path', '/']],
    ['upper case in a name', [...GOOD, 'A', 'b']],
    ['an empty name', [...GOOD, '', 'b']],
    ['a space in a name', [...GOOD, 'a b', 'c']],
    ['a colon in a name', [...GOOD, 'a:', 'c']],
    ['CR in a value', [...GOOD, 'a', 'b\rc']],
    ['LF in a value', [...GOOD, 'a', 'b\nc']],
    ['NUL in a value', [...GOOD, 'a', 'b\0c']],
    ['a space before a value', [...GOOD, 'a', ' b']],
    ['a tab behind a value', [...GOOD, 'a', 'b\t']],
    ['LF in the path', [':method', 'POST', ':scheme', 'http', ':path', '/\n']],
    ['connection', [...GOOD, 'connection', 'close']],
    ['transfer-encoding', [...GOOD, 'transfer-encoding', 'chunked']],
    ['te other than trailers', [...GOOD, 'te', 'gzip']],
    ['a length that is no number', [...GOOD, 'content-length', '1x']],
    ['a negative length', [...GOOD, 'content-length', '-1']],
    ['two lengths', [...GOOD, 'content-length', '1', 'content-length', '2']],
  ])('with %s is malformed', (_name, fields) => {
    expect(readRequestHead(fields)).toBeUndefined();
  });

  test('trailers have no pseudo-headers', () => {
    expect(areTrailers(['a', 'b'])).toBe(true);
    expect(areTrailers([])).toBe(true);
    expect(areTrailers([':path', '/'])).toBe(false);
  });

  test("an answer's status has its index of the static table", () => {
    expect(encodeFields([[':status', '200']]).toString('hex')).toBe('88');
  });
});
