import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createRandom } from '../../bench/fuzz/random.ts';
import { REPEATED } from '../../src/decision/model.ts';
import type { CheckRequest } from '../../src/extauthz/check-input.ts';
import { type CheckMessage, readCheckRequest } from '../../src/extauthz/check-request.ts';
import { runs } from '../support/properties.ts';
import { writeFields } from '../support/protobuf.ts';
import { type CheckRequestMessage, decodeRequest, encodeRequest, type HttpMessage } from './support/definition.ts';
import { checkRequest, type RequestSpec } from './support/requests.ts';
import { rewrite } from './support/rewrite.ts';
import { twin } from './support/twin.ts';

const MALFORMED: CheckMessage = { kind: 'malformed', shadow: false };

function read(bytes: Uint8Array, trustedHops = 0): CheckRequest {
  const message = readCheckRequest(Buffer.from(bytes), trustedHops);
  if (message.kind === 'malformed') throw new Error('malformed');
  return message;
}

const headersOf = (...headers: readonly (readonly [string, string])[]): RequestSpec => ({ headers, form: 'raw' });

const guarded = fc.constantFrom(
  'x-tenant-id',
  'x-postern-subject',
  'x-postern',
  'x-http-method-override',
  'x-http-method',
  'x-original-url',
  'authorization',
  'x-api-key',
  'api-key',
  'accept-encoding',
);
const separators = fc.string({ unit: fc.constantFrom('-', '_', '.', '~', '|', ' ', 'é'), minLength: 1, maxLength: 2 });
const edge = fc.oneof({ weight: 4, arbitrary: fc.constant('') }, { weight: 1, arbitrary: separators });
/** A guarded name, each of whose separators may be another, and some letters upper case. */
const spelling = fc
  .tuple(
    guarded,
    fc.array(fc.oneof(fc.constant('-'), separators), { minLength: 4, maxLength: 4 }),
    edge,
    edge,
    fc.nat(),
  )
  .map(([text, between, before, after, upper]) => {
    const parts = text.split('-').map((part, i) => ((upper >> i) & 1 ? part.toUpperCase() : part));
    return before + parts.reduce((begun, part, i) => begun + (between[i] ?? '-') + part) + after;
  });

const name = fc.oneof(
  spelling,
  fc.constantFrom(
    'authorization',
    'Authorization',
    'x-tenant-id',
    'X-Tenant-ID',
    'upgrade',
    'content-type',
    'Content-Encoding',
    'content-encoding',
    'content-length',
    'x-envoy-auth-partial-body',
    'x-forwarded-for',
    'X-Forwarded-For',
    'x-request-id',
    'x-postern-subject',
    'X_Postern_Roles',
    'x.postern-x',
    'x-posterns-x',
    'xxposternxx',
    ':path',
    '',
  ),
  fc.string({ maxLength: 20 }).filter((text) => text !== '__proto__'),
);
const value = fc.oneof(
  fc.constantFrom(
    '',
    'true',
    'false',
    '3',
    '10',
    '1, 2',
    'application/json',
    '203.0.113.9, 10.0.0.1,  ::1 ',
    '[2001:db8::1],10.0.0.2',
    ',,',
  ),
  fc.string({ unit: 'grapheme', maxLength: 40 }),
);
const bytes = fc.uint8Array({ maxLength: 40 }).map((array) => Buffer.from(array));
const some = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(arbitrary, { nil: undefined });

/** Absent members left out, as the library wants it. */
function compact<T extends object>(object: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(object).filter(([, member]) => member !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
}

const http: fc.Arbitrary<HttpMessage> = fc
  .record({
    id: some(fc.string()),
    method: some(fc.constantFrom('GET', 'POST', 'PÖST')),
    headers: some(fc.dictionary(name, value, { maxKeys: 6, noNullPrototype: true })),
    header_map: some(
      fc.record({
        headers: fc.array(fc.record({ key: some(name), value: some(value), raw_value: some(bytes) }).map(compact), {
          maxLength: 6,
        }),
      }),
    ),
    path: some(fc.string({ unit: 'grapheme' })),
    host: some(fc.string()),
    size: some(fc.oneof(fc.integer({ min: -1, max: 50 }), fc.maxSafeInteger())),
    protocol: some(fc.constantFrom('HTTP/1.1', 'HTTP/2')),
    body: some(fc.string({ unit: 'grapheme' })),
    raw_body: some(bytes),
  })
  .map(compact);

const address = fc.oneof(
  fc.record({
    socket_address: fc.record({ address: fc.constantFrom('192.0.2.1', '::1', ''), port_value: fc.nat(65535) }),
  }),
  fc.record({ pipe: fc.record({ path: fc.string() }) }),
  fc.constant({}),
);

const request: fc.Arbitrary<CheckRequestMessage> = fc
  .record({
    attributes: some(
      fc
        .record({
          source: some(
            fc.record({ address, service: fc.string(), labels: fc.dictionary(fc.constantFrom('a', 'b'), fc.string()) }),
          ),
          destination: some(fc.record({ address })),
          request: some(fc.record({ time: fc.record({ seconds: fc.nat() }), http: some(http) }).map(compact)),
          context_extensions: some(
            fc.dictionary(
              fc.constantFrom('x', 'postern.body', 'postern.bodY', 'postern.mode', 'postern.mod', 'postern.headers'),
              fc.oneof(fc.constantFrom('not_sent', 'sent', 'shadow', 'Shadow', ''), fc.string()),
              { noNullPrototype: true },
            ),
          ),
        })
        .map(compact),
    ),
  })
  .map(compact);

describe('the reader agrees with the complete definition', () => {
  test('on random messages, both forms of headers and any number of trusted hops', () => {
    fc.assert(
      fc.property(request, fc.nat(3), (message, hops) => {
        const encoded = encodeRequest(message);
        expect(readCheckRequest(encoded, hops)).toEqual(twin(decodeRequest(encoded), hops));
      }),
      { numRuns: runs(1000) },
    );
  });

  test('however the same message is written: unknown fields, groups, long varints, messages in parts', () => {
    fc.assert(
      fc.property(request, fc.nat(), (message, seed) => {
        const encoded = encodeRequest(message);
        expect(readCheckRequest(rewrite(encoded, createRandom(seed)), 1)).toEqual(readCheckRequest(encoded, 1));
      }),
      { numRuns: runs(1000) },
    );
  });
});

describe('the rules of Protocol Buffers', () => {
  const wrapHttp = (...fields: readonly (readonly [number, string | number | Uint8Array])[]): Uint8Array =>
    writeFields([[1, writeFields([[4, writeFields([[2, writeFields(fields)]])]])]]);

  test('the last of a repeated scalar wins', () => {
    const { input } = read(wrapHttp([2, 'GET'], [4, '/a'], [4, '/b'], [2, 'POST'], [12, 'one'], [12, 'two']));
    expect([input.method, input.path, Buffer.from(input.body).toString()]).toEqual(['POST', '/b', 'two']);
  });

  test('a known field of another wire type is an unknown field', () => {
    expect(read(wrapHttp([4, '/a'], [4, 7], [9, 'x'])).input.path).toBe('/a');
  });

  test('a pipe after a socket address takes its place', () => {
    const peer = (...fields: readonly (readonly [number, Uint8Array])[]): Uint8Array =>
      writeFields([
        [
          1,
          writeFields([
            [1, writeFields([[1, writeFields(fields)]])],
            [4, writeFields([[2, '']])],
          ]),
        ],
      ]);
    const socket = writeFields([[2, '192.0.2.1']]);
    const pipe = writeFields([[1, '/run/x']]);
    expect(read(peer([1, socket])).input.clientAddress).toBe('192.0.2.1');
    expect(read(peer([1, socket], [2, pipe])).input.clientAddress).toBeUndefined();
    expect(read(peer([2, pipe], [1, socket])).input.clientAddress).toBe('192.0.2.1');
    expect(read(peer([1, socket], [2, pipe], [1, new Uint8Array()])).input.clientAddress).toBeUndefined();
  });

  test.each([
    ['field number 0', [0x00, 0x00]],
    ['a field number beyond 2^29-1', [0x80, 0x80, 0x80, 0x80, 0x10, 0x00]],
    ['wire type 6', [0x0e]],
    ['wire type 7', [0x0f]],
    ['a group that never ends', [0x0b, 0x08, 0x01]],
    ['a group that another one ends', [0x0b, 0x14]],
    ['the end of a group that never began', [0x0c]],
    ['a varint of eleven bytes', [0x08, ...new Array<number>(10).fill(0x80), 0x01]],
    ['a varint of more than 64 bits', [0x08, ...new Array<number>(9).fill(0xff), 0x02]],
    ['a length beyond the end', [0x0a, 0x05, 0x00]],
    ['a length of almost 2^64', [0x0a, ...new Array<number>(9).fill(0xff), 0x01]],
    ['a cut 64-bit field', [0x09, 1, 2, 3]],
    ['a cut 32-bit field', [0x0d, 1, 2, 3]],
    ['groups nested a million deep', new Array<number>(1_000_000).fill(0x0b)],
  ])('%s is malformed', (_name, message) => {
    expect(readCheckRequest(Buffer.from(message), 0)).toEqual(MALFORMED);
  });

  test('a string that is not UTF-8 is malformed, raw bytes are not', () => {
    const bad = Buffer.from([0x2f, 0xff]);
    for (const field of [2, 4, 11]) expect(readCheckRequest(Buffer.from(wrapHttp([field, bad])), 0)).toEqual(MALFORMED);
    for (const entry of [[1, bad] as const, [2, bad] as const]) {
      expect(readCheckRequest(Buffer.from(wrapHttp([3, writeFields([entry])])), 0)).toEqual(MALFORMED);
    }
    expect(read(wrapHttp([12, bad])).input.body).toEqual(bad);
  });

  test('no bytes, no attributes and no HTTP attributes are malformed', () => {
    for (const message of [{}, { attributes: {} }, { attributes: { request: {} } }]) {
      expect(readCheckRequest(encodeRequest(message), 0)).toEqual(MALFORMED);
    }
  });

  test('a message cut anywhere is malformed', () => {
    const whole = checkRequest({ headers: [['authorization', 'Bearer x']], body: '{"model":"m"}' });
    for (let length = 0; length < whole.length; length++) {
      const cut = readCheckRequest(whole.subarray(0, length), 0);
      // Before the last field of the outermost message there is one place to cut without a trace: none of it.
      expect(cut).toEqual(MALFORMED);
    }
  });
});

describe('headers', () => {
  test('names compare without case, in both forms', () => {
    for (const form of ['map', 'raw'] as const) {
      const { input } = read(
        checkRequest({
          headers: [
            ['AUTHORIZATION', 'Bearer a'],
            ['X-Tenant-Id', 'acme'],
          ],
          form,
        }),
      );
      expect([input.authorization, input.tenant]).toEqual(['Bearer a', 'acme']);
    }
  });

  test.each(['authorization', 'x-tenant-id', 'upgrade', 'content-type', 'content-encoding'])(
    '%s twice is REPEATED, the same value too',
    (header) => {
      const { input } = read(checkRequest(headersOf([header, 'a'], [header.toUpperCase(), 'a'])));
      const seen = [input.authorization, input.tenant, input.upgrade, input.contentType, input.contentEncoding];
      expect(seen.filter((found) => found === REPEATED)).toHaveLength(1);
    },
  );

  test('two spellings of one name in the map, and one name in both forms, are REPEATED', () => {
    const twice = encodeRequest({
      attributes: { request: { http: { headers: { authorization: 'a', Authorization: 'b' } } } },
    });
    expect(read(twice).input.authorization).toBe(REPEATED);
    const both = encodeRequest({
      attributes: {
        request: {
          http: { headers: { authorization: 'a' }, header_map: { headers: [{ key: 'authorization', value: 'a' }] } },
        },
      },
    });
    expect(read(both).input.authorization).toBe(REPEATED);
  });

  test('one key twice in the map is REPEATED: no writer of maps does that', () => {
    const entry = writeFields([
      [1, 'authorization'],
      [2, 'Bearer a'],
    ]);
    const message = writeFields([
      [
        1,
        writeFields([
          [
            4,
            writeFields([
              [
                2,
                writeFields([
                  [3, entry],
                  [3, entry],
                ]),
              ],
            ]),
          ],
        ]),
      ],
    ]);
    expect(read(message).input.authorization).toBe(REPEATED);
  });

  test('pseudo-headers never stand in for method and path', () => {
    const { input } = read(
      checkRequest({
        method: 'GET',
        path: '/a',
        headers: [
          [':method', 'POST'],
          [':path', '/b'],
        ],
      }),
    );
    expect([input.method, input.path]).toEqual(['GET', '/a']);
  });

  test('raw bytes that are not UTF-8 never read as a plausible value', () => {
    const { input } = read(
      checkRequest({ headers: [['authorization', Buffer.from('Bearer \xff', 'latin1')]], form: 'raw' }),
    );
    expect(input.authorization).toBe('Bearer \ufffd');
  });

  test('a header beyond any use is not read at all', () => {
    const { input } = read(checkRequest({ headers: [['authorization', `Bearer ${'a'.repeat(10_000_000)}`]] }));
    expect(input.authorization).toBe(REPEATED);
  });

  test('every spelling of an x-postern- name is an alias, and so is every other spelling of a guarded name', () => {
    const aliases = [
      'x-postern-subject',
      'X_POSTERN_ROLES',
      'x.postern.x',
      'x-postern_y',
      'x-postern-',
      'x--postern-z',
      '-x-postern-a',
      'X-Tenant.ID',
      'X.Tenant-ID',
      'X--Tenant-ID',
      'x_tenant_id',
      'x-tenant-id-',
      '_x-tenant-id',
      'x~tenant|id',
      'X_HTTP_Method_Override',
      'x-original.url',
      'X_API_Key',
      'x.api.key',
      'X-Api--Key',
      'api_key',
      '-authorization',
      'Authorization_',
      'Accept.Encoding',
      'accept_encoding',
    ];
    const others = [
      'x-postern',
      'ax-postern-b',
      'x-posternz-',
      'x-tenant-ids',
      'xtenantid',
      'x-tenant-id-name',
      'x-http-method-override',
      'X-Rewrite-URL',
      'X-Api-Key',
      'api-key',
      'accept_language',
      'accept-encoding',
      'x-forwarded_for',
      'x',
      '-',
      '',
    ];
    const aliasesOf = (form: 'map' | 'raw'): readonly string[] =>
      read(checkRequest({ headers: [...aliases, ...others].map((header) => [header, 'v'] as const), form })).aliases
        .names;
    for (const form of ['map', 'raw'] as const) {
      expect(aliasesOf(form)).toEqual(aliases.map((header) => header.toLowerCase()));
    }
  });

  test('the aliases are all that there are only if the configuration of Envoy says so', () => {
    const areAll = (context: Readonly<Record<string, string>>): boolean =>
      read(checkRequest({ headers: [['postern.headers', 'sent']], context })).aliases.areAll;
    expect(areAll({ 'postern.headers': 'sent' })).toBe(true);
    expect(areAll({ 'postern.body': 'not_sent', 'postern.headers': 'sent' })).toBe(true);
    for (const context of [{}, { 'postern.headers': 'Sent' }, { 'postern.headers': '' }, { 'postern.body': 'sent' }])
      expect(areAll(context)).toBe(false);
  });

  test('another spelling is never read as the header itself', () => {
    const headers = [
      ['x-tenant.id', 'globex'],
      ['x--tenant-id', 'globex'],
      ['authorization-', 'Bearer x'],
    ] as const;
    const { input } = read(checkRequest(headersOf(...headers)));
    expect([input.tenant, input.authorization]).toEqual([undefined, undefined]);
  });

  test('more of them than any request may have are malformed', () => {
    const many = Array.from({ length: 200 }, (_, i) => [`x-postern-${i}`, 'v'] as const);
    expect(readCheckRequest(checkRequest(headersOf(...many)), 0)).toEqual(MALFORMED);
  });
});

describe('the body', () => {
  test('raw bytes win over text', () => {
    const both = encodeRequest({ attributes: { request: { http: { body: 'text', raw_body: Buffer.from('raw') } } } });
    expect(Buffer.from(read(both).input.body).toString()).toBe('raw');
  });

  test.each<[string, RequestSpec, boolean]>([
    ['whole', { body: 'abc' }, false],
    ['of which the size is unknown, so that it may be the beginning only', { body: 'abc', size: -1 }, true],
    ['empty and of unknown size', { body: '', size: -1 }, false],
    [
      'empty and of unknown size, with a length that is no number',
      { size: -1, headers: [['content-length', '']] },
      true,
    ],
    ['empty and of unknown size, with a length', { size: -1, headers: [['content-length', '4']] }, true],
    [
      'of unknown size that the client marks as whole',
      { body: 'abc', size: -1, headers: [['x-envoy-auth-partial-body', 'false']] },
      true,
    ],
    ['shorter than Envoy announced', { body: 'abc', size: 4 }, true],
    ['whose bytes have come and were not sent', { body: '', size: 4 }, true],
    ['shorter than content-length', { body: 'abc', headers: [['content-length', '4']] }, true],
    ['as long as content-length', { body: 'abc', headers: [['content-length', '3']] }, false],
    ['of a length that is no number', { body: 'abc', headers: [['content-length', 'x']] }, true],
    [
      'of two lengths',
      {
        body: 'abc',
        headers: [
          ['content-length', '3'],
          ['content-length', '3'],
        ],
        form: 'raw',
      },
      true,
    ],
    ['marked partial', { body: 'abc', headers: [['x-envoy-auth-partial-body', 'true']] }, true],
    ['marked whole', { body: 'abc', headers: [['x-envoy-auth-partial-body', 'false']] }, false],
    [
      'marked both',
      {
        headers: [
          ['x-envoy-auth-partial-body', 'true'],
          ['x-envoy-auth-partial-body', 'false'],
        ],
        form: 'raw',
      },
      true,
    ],
  ])('%s', (_name, spec, partial) => {
    expect(read(checkRequest(spec)).input.bodyPartial).toBe(partial);
  });

  test('of more than the largest size counts as partial', () => {
    const bytes = checkRequest({ body: 'abcd' });
    const partial = (maxBodyBytes: number): boolean => {
      const message = readCheckRequest(bytes, 0, maxBodyBytes);
      return message.kind === 'request' && message.input.bodyPartial;
    };
    expect([3, 4, 5].map(partial)).toEqual([true, false, false]);
  });

  const mark = { 'postern.body': 'not_sent' };
  test.each<[string, RequestSpec, boolean]>([
    ['is missing when a length is announced', { headers: [['content-length', '12']], size: 0 }, true],
    ['is missing when bytes of it had come', { size: 12 }, true],
    ['is missing without a length on a route that is not inspected', { size: 0, context: mark }, true],
    ['is empty without a length on any other route', { size: 0 }, false],
    ['is empty when its length is 0', { headers: [['content-length', '0']], size: 0, context: mark }, false],
    [
      'is empty when Envoy marked it as whole',
      { headers: [['x-envoy-auth-partial-body', 'false']], size: 0, context: mark },
      false,
    ],
    [
      'is cut when Envoy marked it as partial',
      {
        headers: [
          ['x-envoy-auth-partial-body', 'true'],
          ['content-length', '12'],
        ],
      },
      false,
    ],
    ['is there when some of it is', { body: 'abc', headers: [['content-length', '12']], context: mark }, false],
    ['is of no readable length', { headers: [['content-length', 'x']], context: mark }, false],
    [
      'belongs to a request for an upgrade',
      {
        headers: [
          ['upgrade', 'websocket'],
          ['content-length', '12'],
        ],
        context: mark,
      },
      false,
    ],
    ['has a mark with another value', { size: 0, context: { 'postern.body': 'sent' } }, false],
  ])('%s', (_name, spec, missing) => {
    for (const form of ['map', 'raw'] as const) {
      expect(read(checkRequest({ ...spec, form })).input.bodyMissing).toBe(missing);
    }
  });
});

describe('the client address', () => {
  const forwarded = (hops: number, ...values: readonly string[]): string | undefined =>
    read(checkRequest(headersOf(...values.map((list) => ['x-forwarded-for', list] as const))), hops).input
      .clientAddress;

  test('without trusted hops is the connection’s peer, for any forwarded header of the client', () => {
    expect(forwarded(0, '203.0.113.9')).toBe('192.0.2.10');
  });

  test.each<[string, number, readonly string[], string | undefined]>([
    ['one hop: the second from the right', 1, ['198.51.100.1, 203.0.113.9, 10.0.0.1'], '203.0.113.9'],
    ['two hops: the third', 2, ['198.51.100.1, 203.0.113.9, 10.0.0.1'], '198.51.100.1'],
    ['several headers read as one list', 1, ['198.51.100.1', '203.0.113.9', '10.0.0.1'], '203.0.113.9'],
    ['too few entries', 1, ['10.0.0.1'], undefined],
    ['no header', 1, [], undefined],
    ['an empty entry counts', 1, ['203.0.113.9,,10.0.0.1'], undefined],
    ['an entry with a port is no address', 1, ['203.0.113.9:80, 10.0.0.1'], undefined],
    ['leading zeros are no address', 1, ['010.0.0.1, 10.0.0.1'], undefined],
    ['IPv6, bare', 1, ['2001:db8::1, 10.0.0.1'], '2001:db8::1'],
    ['IPv6, in brackets', 1, ['[2001:db8::1], 10.0.0.1'], '2001:db8::1'],
    ['IPv4 in brackets is no address', 1, ['[203.0.113.9], 10.0.0.1'], undefined],
    ['tabs and spaces around it', 1, ['\t 203.0.113.9 \t,10.0.0.1'], '203.0.113.9'],
    ['ten million commas', 1, [','.repeat(10_000_000)], undefined],
  ])('%s', (_name, hops, values, expected) => {
    expect(forwarded(hops, ...values)).toBe(expected);
  });
});
