/**
 * Checks as agentgateway 1.4.1 writes them (`crates/agentgateway/src/http/ext_authz.rs`), and its ExtMcp calls. They
 * differ from Envoy's: repeated headers are joined by a comma and a space, cookies by a semicolon; bytes that are not
 * UTF-8 become U+FFFD; only a size of -1 says that a body is not whole; and a client's own mark of a body passes on.
 */

import { Client, credentials } from '@grpc/grpc-js';
import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { createCheckHandler } from '../../src/extauthz/check-handler.ts';
import { startExtAuthz } from '../../src/extauthz/server.ts';
import { enough, runs } from '../support/properties.ts';
import { writeFields } from '../support/protobuf.ts';
import { type Answer, encodeRequest, readAnswer } from './support/definition.ts';
import { builtinRoutes, littleWorld, NOW_MS } from './support/little-world.ts';
import { checkRequest } from './support/requests.ts';

const world = littleWorld();
const gate = createCheckHandler({
  routes: builtinRoutes(),
  resolver: world.resolver,
  observer: { observe: () => undefined },
  trustedHops: 0,
  forwardCredential: false,
  now: () => NOW_MS,
});

type Headers = readonly (readonly [string, string])[];

const PATH = '/v1/chat/completions';
const CREDENTIAL = ['authorization', `Bearer ${world.tenantKey}`] as const;
const JSON_HEADER = ['content-type', 'application/json'] as const;
const lossy = (bytes: Uint8Array): string => new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);

/** The message of a check, with a body of up to `maxBytes`; undefined = the gateway sends no bodies. */
function check(headers: Headers, body: Buffer, maxBytes: number | undefined, packed: boolean): Buffer {
  const joined = new Map<string, string[]>();
  for (const [name, value] of [[':method', 'POST'], [':path', PATH], ...headers])
    joined.set(name, [...(joined.get(name) ?? []), value]);
  const sent = body.subarray(0, maxBytes ?? 0);
  const size = maxBytes === undefined ? 0 : body.length > maxBytes ? -1 : body.length;
  return encodeRequest({
    attributes: {
      source: { address: { socket_address: { address: '192.0.2.10', port_value: 40_000 } } },
      request: {
        http: {
          id: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
          method: 'POST',
          path: PATH,
          host: 'api.example.com',
          scheme: 'http',
          protocol: 'HTTP/2',
          headers: Object.fromEntries(
            [...joined].map(([name, values]) => [name, values.join(name === 'cookie' ? '; ' : ', ')]),
          ),
          size,
          ...(packed ? { raw_body: sent } : { body: lossy(sent) }),
        },
      },
    },
  });
}

async function decided(headers: Headers, body: Buffer, maxBytes: number | undefined, packed = false): Promise<Answer> {
  return readAnswer(await gate(check(headers, body, maxBytes, packed)));
}

const codeOf = ({ code, status, body }: Answer): string => (code === 0 ? 'allow' : `${status} ${body['code']}`);
const CHAT = Buffer.from('{"model":"llama-3-8b"}');
const SIZE = 64;

test.each<[string, Headers, Buffer, number | undefined, string]>([
  ['a whole body', [], CHAT, SIZE, 'allow'],
  [
    'several cookies',
    [
      ['cookie', 'a=1'],
      ['cookie', 'b=2'],
    ],
    CHAT,
    SIZE,
    'allow',
  ],
  [
    'two tenants',
    [
      ['x-tenant-id', 'acme'],
      ['x-tenant-id', 'acme'],
    ],
    CHAT,
    SIZE,
    '400 invalid_tenant',
  ],
  ['two credentials', [['authorization', 'Bearer other']], CHAT, SIZE, '401 invalid_credential'],
  ['two types of content', [JSON_HEADER], CHAT, SIZE, '400 malformed_body'],
  ['the beginning of a body', [], Buffer.concat([CHAT, Buffer.alloc(100, ' ')]), SIZE, '413 body_too_large'],
  [
    'the beginning of a body that its client marks as whole',
    [['x-envoy-auth-partial-body', 'false']],
    Buffer.concat([CHAT, Buffer.alloc(SIZE, ' '), Buffer.from('{"model":"secret"}')]),
    SIZE,
    '413 body_too_large',
  ],
  ['no body of one with a length', [['content-length', '22']], CHAT, undefined, '503 unavailable'],
  ['no body of one without a length', [], CHAT, undefined, '400 malformed_body'],
  [
    'no body of one that its client marks as whole',
    [
      ['x-envoy-auth-partial-body', 'false'],
      ['content-length', '22'],
    ],
    CHAT,
    undefined,
    '413 body_too_large',
  ],
  ['a model that is not UTF-8', [], Buffer.from('{"model":"llama-3-8b\xff"}', 'latin1'), SIZE, '400 malformed_body'],
])('a check of agentgateway with %s is decided as documented', async (_name, headers, body, maxBytes, expected) => {
  expect(codeOf(await decided([CREDENTIAL, JSON_HEADER, ...headers], body, maxBytes))).toBe(expected);
});

const text = fc.string({ unit: fc.constantFrom('a', '!', 'é', '"', '\\', '\u{1f600}'), maxLength: 4 });
const json = fc
  .record({ model: fc.constantFrom('llama-3-8b', 'secret-one', 'né'), extra: text })
  .map((value) => Buffer.from(JSON.stringify(value)));
const body = fc
  .tuple(json, fc.constantFrom('', ' ', '   ', '{"model":"other"}'), fc.option(fc.nat(), { nil: undefined }))
  .map(([bytes, more, damagedAt]) => {
    const all = Buffer.concat([bytes, Buffer.from(more)]);
    if (damagedAt !== undefined) all[damagedAt % all.length] = 0xff;
    return all;
  });

test('agentgateway’s form of any body, cut at any byte, is decided as the whole body is, or denied', async () => {
  let allowed = 0;
  await fc.assert(
    fc.asyncProperty(
      body,
      fc.oneof(fc.integer({ min: 1, max: 60 }), { weight: 9, arbitrary: fc.constant(1000) }),
      fc.boolean(),
      fc.boolean(),
      async (bytes, maxBytes, packed, marked) => {
        const headers = [CREDENTIAL, JSON_HEADER, ...(marked ? [['x-envoy-auth-partial-body', 'false'] as const] : [])];
        const answer = await decided(headers, bytes, maxBytes, packed);
        if (answer.code !== 0) return;
        allowed++;
        expect(bytes.length).toBeLessThanOrEqual(maxBytes);
        // Envoy's full form of the same bytes; a text that the decision does not read may be replaced.
        const whole = readAnswer(
          await gate(checkRequest({ headers, body: packed ? bytes : Buffer.from(lossy(bytes)), form: 'raw' })),
        );
        expect([whole.code, whole.metadata['model']]).toEqual([0, answer.metadata['model']]);
      },
    ),
    { numRuns: runs(3000) },
  );
  expect(allowed).toBeGreaterThanOrEqual(enough(50));
});

test('a call of agentgateway’s ExtMcp is unimplemented, which is never a pass', async () => {
  const server = await startExtAuthz(gate, { listen: '127.0.0.1:0' });
  const client = new Client(server.address, credentials.createInsecure());
  onTestFinished(async () => {
    client.close();
    await server.drain(1000);
  });
  server.setReady(true);
  const same = (value: Buffer): Buffer => value;
  const request = Buffer.from(
    writeFields([
      [1, 'tools'],
      [2, 'tools/call'],
    ]),
  );
  for (const method of ['CheckRequest', 'CheckResponse']) {
    const { promise, resolve } = Promise.withResolvers<number | undefined>();
    client.makeUnaryRequest(`/agentgateway.dev.ext_mcp.ExtMcp/${method}`, same, same, request, (error) =>
      resolve(error?.code),
    );
    expect(await promise).toBe(12);
  }
});
