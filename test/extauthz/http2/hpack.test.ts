/** Header blocks, against the RFC's examples and the encoder of Node's client. */

import { once } from 'node:events';
import { connect, type OutgoingHttpHeaders } from 'node:http2';
import { createServer } from 'node:net';
import fc from 'fast-check';
import { afterEach, describe, expect, test } from 'vitest';
import { MAX_HEADER_FIELDS, MAX_HEADER_LIST_BYTES } from '../../../src/extauthz/http2/bounds.ts';
import { HeaderDecoder } from '../../../src/extauthz/http2/hpack-decode.ts';
import { encodeFields } from '../../../src/extauthz/http2/hpack-encode.ts';
import { decodeHuffman } from '../../../src/extauthz/http2/huffman.ts';
import { STATIC_TABLE } from '../../../src/extauthz/http2/static-table.ts';
import { runs } from '../../support/properties.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const hex = (text: string): Buffer => Buffer.from(text.replace(/\s/g, ''), 'hex');

function decode(decoder: HeaderDecoder, block: Buffer): [string, string][] | string {
  const decoded = decoder.decode(block, 0, block.length);
  return decoded === 'fields' ? fieldsOf(decoder) : decoded;
}

function fieldsOf(decoder: HeaderDecoder): [string, string][] {
  return decoder.fields.flatMap((name, i): [string, string][] =>
    i % 2 === 0 ? [[name, decoder.fields[i + 1] ?? '']] : [],
  );
}

describe('the examples of RFC 7541, appendix C', () => {
  test.each([
    ['C.2.1', '400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572', [['custom-key', 'custom-header']]],
    ['C.2.2', '040c 2f73 616d 706c 652f 7061 7468', [[':path', '/sample/path']]],
    ['C.2.3', '1008 7061 7373 776f 7264 0673 6563 7265 74', [['password', 'secret']]],
    ['C.2.4', '82', [[':method', 'GET']]],
  ])('%s decodes to its header list', (_name, block, expected) => {
    expect(decode(new HeaderDecoder(), hex(block))).toEqual(expected);
  });

  const first = [
    [':method', 'GET'],
    [':scheme', 'http'],
    [':path', '/'],
    [':authority', 'www.example.com'],
  ];
  const second = [...first, ['cache-control', 'no-cache']];
  const third = [
    [':method', 'GET'],
    [':scheme', 'https'],
    [':path', '/index.html'],
    [':authority', 'www.example.com'],
    ['custom-key', 'custom-value'],
  ];

  test.each([
    [
      'C.3, plain',
      [
        '8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d',
        '8286 84be 5808 6e6f 2d63 6163 6865',
        '8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65',
      ],
    ],
    [
      'C.4, Huffman',
      [
        '8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff',
        '8286 84be 5886 a8eb 1064 9cbf',
        '8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf',
      ],
    ],
  ])(
    '%s: three requests on one connection, each referring to the table that the ones before filled',
    (_name, blocks) => {
      const decoder = new HeaderDecoder();
      expect(blocks.map((block) => decode(decoder, hex(block)))).toEqual([first, second, third]);
    },
  );
});

/** The code of a text, one character for each bit. */
function naiveBits(text: string): string {
  return [...Buffer.from(text, 'latin1')].map((byte) => CODES[byte] ?? '').join('');
}

const CODES: string[] = [];
/**
 * Learns the codes from the decoder, by feeding it every code that it may take for one symbol, so that they can be
 * compared with the RFC's.
 */
function learn(): void {
  const into = Buffer.alloc(64);
  let open = [''];
  while (open.length > 0) {
    const longer: string[] = [];
    for (const prefix of open) {
      for (const bit of ['0', '1']) {
        const code = prefix + bit;
        // Eight times the same code is a whole number of bytes.
        const bytes = Buffer.from((code.repeat(8).match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)));
        const length = decodeHuffman(bytes, 0, bytes.length, into);
        const symbol = into[0] ?? 0;
        if (length === 8 && into.subarray(0, 8).every((byte) => byte === symbol)) CODES[symbol] = code;
        else if (code.length < 30) longer.push(code);
      }
    }
    // At most the inner nodes of a code of 257 symbols, and the nodes after EOS.
    open = longer.length > 4096 ? [] : longer;
  }
}

describe('Huffman codes', () => {
  test('of the RFC: the first of each length, and the longest', () => {
    learn();
    const known: [number, string][] = [
      [0x30, '00000'],
      [0x61, '00011'],
      [0x20, '010100'],
      [0x3a, '1011100'],
      [0x26, '11111000'],
      [0x21, '1111111000'],
      [0x7c, '11111111100'],
      [0x23, '111111111010'],
      [0x00, '1111111111000'],
      [0x5e, '11111111111100'],
      [0x3c, '111111111111100'],
      [0x5c, '1111111111111110000'],
      [0x80, '11111111111111100110'],
      [0x01, '11111111111111111011000'],
      [0x09, '111111111111111111101010'],
      [0x0a, '111111111111111111111111111100'],
      [0x16, '111111111111111111111111111110'],
    ];
    expect(known.map(([symbol]) => [symbol, CODES[symbol]])).toEqual(known);
    expect(CODES.filter(Boolean)).toHaveLength(256);
    // A code of 256 symbols and EOS leaves no gap.
    expect(CODES.reduce((sum, code) => sum + 2 ** -code.length, 2 ** -30)).toBe(1);
  });

  test('of any text, with padding of 0 to 7 bits of EOS, decode to it', () => {
    learn();
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
        const text = Buffer.from(bytes).toString('latin1');
        const bits = naiveBits(text);
        const padded = bits + '1'.repeat((8 - (bits.length % 8)) % 8);
        const code = Buffer.from((padded.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)));
        const into = Buffer.alloc(Math.ceil(code.length * 1.6) + 1);
        expect(into.toString('latin1', 0, decodeHuffman(code, 0, code.length, into))).toBe(text);
        // Eight bits of padding are one too many, and a 0 is none (section 5.2).
        expect(
          decodeHuffman(Buffer.concat([code, Buffer.of(0xff)]), 0, code.length + 1, Buffer.alloc(into.length + 2)),
        ).toBe(-1);
      }),
      { numRuns: runs(2000) },
    );
  });

  test('with EOS in the text are refused', () => {
    expect(decodeHuffman(Buffer.of(0xff, 0xff, 0xff, 0xff), 0, 4, Buffer.alloc(9))).toBe(-1);
  });
});

/** Blocks as nghttp2 encodes them, with Huffman codes and its dynamic table. */
async function encodedByNode(requests: readonly OutgoingHttpHeaders[], tableBytes?: number): Promise<Buffer[]> {
  const blocks: Buffer[] = [];
  const all = Promise.withResolvers<void>();
  const server = createServer((socket) => {
    let rest: Buffer = Buffer.alloc(0);
    let hasPreface = false;
    const table = Buffer.alloc(tableBytes === undefined ? 0 : 6);
    if (tableBytes !== undefined) {
      table.writeUInt16BE(1, 0);
      table.writeUInt32BE(tableBytes, 2);
    }
    socket.write(Buffer.concat([Buffer.from([0, 0, table.length, 4, 0, 0, 0, 0, 0]), table]));
    socket.on('error', () => undefined);
    socket.on('data', (chunk: Buffer) => {
      rest = Buffer.concat([rest, chunk]);
      if (!hasPreface && rest.length >= 24) {
        rest = rest.subarray(24);
        hasPreface = true;
      }
      while (hasPreface && rest.length >= 9 && rest.length >= 9 + rest.readUIntBE(0, 3)) {
        const end = 9 + rest.readUIntBE(0, 3);
        // HEADERS with END_HEADERS; Node sends a priority.
        if (rest[3] === 1) blocks.push(Buffer.from(rest.subarray((rest[4] ?? 0) & 0x20 ? 14 : 9, end)));
        rest = rest.subarray(end);
      }
      if (blocks.length >= requests.length) all.resolve();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('no port');
  const session = connect(`http://127.0.0.1:${address.port}`);
  session.on('error', () => undefined);
  await once(session, 'remoteSettings');
  for (const headers of requests) session.request(headers).on('error', () => undefined);
  await all.promise;
  session.destroy();
  server.close();
  return blocks;
}

const value = fc
  .string({ unit: fc.constantFrom(...'abcXYZ0189 -_/.;=%{}"~|<>\\'), maxLength: 40 })
  .map((text) => text.trim());
const name = fc.stringMatching(/^x-[a-z]{1,6}$/);

describe("header blocks of nghttp2's encoder", () => {
  test.each([
    ['its default table', undefined],
    ['a table of 64 bytes', 64],
    ['no table', 0],
  ])('decode to what was sent, with %s', async (_name, tableBytes) => {
    const requests = fc.sample(fc.dictionary(name, value, { maxKeys: 8 }), { numRuns: 300, seed: 7 });
    const sent = requests.map((headers, i) => ({ ':method': 'POST', ':path': `/t.S/M${i % 5}`, ...headers }));
    const decoder = new HeaderDecoder();
    if (tableBytes === 0) decoder.table.close();
    const decoded = (await encodedByNode(sent, tableBytes)).map((block) => {
      expect(decoder.decode(block, 0, block.length)).toBe('fields');
      return Object.fromEntries(fieldsOf(decoder));
    });
    for (const [i, headers] of sent.entries()) expect(decoded[i]).toMatchObject(headers);
  });
});

describe('a header block', () => {
  test('of this project decodes to its fields, for any fields', () => {
    const field = fc.tuple(
      fc.string({ unit: 'binary-ascii', maxLength: 300 }),
      fc.string({ unit: 'binary-ascii', maxLength: 300 }),
    );
    const any = fc.array(fc.oneof(field, fc.constantFrom(...STATIC_TABLE)), { maxLength: 20 });
    fc.assert(
      fc.property(any, (fields) => {
        expect(decode(new HeaderDecoder(), encodeFields(fields))).toEqual(fields);
      }),
    );
  });

  test.each([
    ['index 0', '80'],
    ['an index behind the tables', 'be'],
    ['an index behind both tables, of a literal', '7f 00 01 61'],
    ['a text cut off', '40 05 61 62'],
    ['a length cut off', '40 7f'],
    ['a length of 2^32', '40 7f ff ff ff ff 0f'],
    ['a length that never ends', '40 7f 80 80 80 80 80 80 80 80 80 80 00'],
    ['a table larger than the setting', '3f e1 3f'],
    ['a new size of the table behind a field', '82 20'],
    ['a broken Huffman code', '40 82 ff ff 01 61'],
  ])('with %s is broken', (_name, block) => {
    expect(decode(new HeaderDecoder(), hex(block))).toBe('broken');
  });

  test('cannot refer to the table after the peer has acknowledged that there is none', () => {
    const decoder = new HeaderDecoder();
    expect(decode(decoder, hex('40 01 61 01 62'))).toEqual([['a', 'b']]);
    expect(decode(decoder, hex('be'))).toEqual([['a', 'b']]);
    decoder.table.close();
    expect(decode(decoder, hex('be'))).toBe('broken');
    expect(decode(decoder, hex('20 40 01 61 01 62'))).toEqual([['a', 'b']]);
    expect(decode(decoder, hex('be'))).toBe('broken');
    expect(decode(decoder, hex('21'))).toBe('broken');
  });

  test('whose list is longer than the bounds keeps none of what is beyond, and the table stays right', () => {
    const decoder = new HeaderDecoder();
    const many = Buffer.alloc(MAX_HEADER_FIELDS + 1, 0x82);
    expect(decode(decoder, many)).toBe('too-large');
    const bomb = Buffer.concat([encodeFields([['a', 'x'.repeat(4000)]]), Buffer.alloc(60_000, 0x82)]);
    expect(decode(decoder, bomb)).toBe('too-large');
    expect(decoder.fields.join('').length).toBeLessThanOrEqual(MAX_HEADER_LIST_BYTES);
    expect(decode(decoder, hex('40 01 61 01 62'))).toEqual([['a', 'b']]);
    expect(decode(decoder, hex('be'))).toEqual([['a', 'b']]);
  });

  test('of random bytes never throws, and is fields, too large or broken', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 80 }), { maxLength: 10 }), (blocks) => {
        const decoder = new HeaderDecoder();
        for (const block of blocks) {
          const decoded = decoder.decode(Buffer.from(block), 0, block.length);
          expect(['fields', 'too-large', 'broken']).toContain(decoded);
          if (decoded === 'broken') return;
        }
      }),
      { numRuns: runs(5000) },
    );
  });
});
