/**
 * The same request in the form that a full profile sends (raw bytes, repeated headers apart) and in that of a plain one
 * (text, a map of headers): decided alike, or denied in the plain form.
 */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createCheckHandler } from '../../src/extauthz/check-handler.ts';
import { enough, runs } from '../support/properties.ts';
import { writeFields } from '../support/protobuf.ts';
import { asText, joinedHeaders } from '../support/text-form.ts';
import { type Answer, readAnswer } from './support/definition.ts';
import { builtinRoutes, littleWorld, NOW_MS } from './support/little-world.ts';
import { checkRequest } from './support/requests.ts';

const world = littleWorld();
const gate = createCheckHandler({
  routes: builtinRoutes(),
  resolver: world.resolver,
  observer: { observe: () => undefined },
  trustedHops: 1,
  forwardCredential: false,
  now: () => NOW_MS,
});

interface Sent {
  readonly method: string;
  readonly path: string;
  readonly headers: readonly (readonly [string, string | Uint8Array])[];
  readonly body: Buffer;
}

async function decide(request: Buffer): Promise<Answer> {
  return readAnswer(await gate(request));
}

const bytesForm = ({ body, ...rest }: Sent): Promise<Answer> => decide(checkRequest({ ...rest, body, form: 'raw' }));
const textForm = ({ body, headers, ...rest }: Sent): Promise<Answer> =>
  decide(
    checkRequest({ ...rest, headers: joinedHeaders(headers), body: asText(body), form: 'map', size: body.length }),
  );

/** An answer without what differs from request to request. */
function told({ code, status, body, headers, removed, added }: Answer): object {
  const { 'x-request-id': _ofDenial, ...rest } = headers;
  const { 'x-request-id': _ofAllow, ...others } = added;
  return { code, status, error: body['code'], headers: rest, removed, added: others };
}

const JSON_HEADER = ['content-type', 'application/json'] as const;
const header = fc.oneof(
  { weight: 4, arbitrary: fc.constant(['authorization', `Bearer ${world.tenantKey}`] as const) },
  { weight: 4, arbitrary: fc.constant(JSON_HEADER) },
  {
    weight: 1,
    arbitrary: fc.constantFrom('acme', 'other', 'acme,acme', '').map((value) => ['x-tenant-id', value] as const),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      ['authorization', `Bearer ${world.ownedKey}`] as const,
      ['authorization', ''] as const,
      ['content-type', 'text/plain'] as const,
      ['content-encoding', 'gzip'] as const,
      ['content-encoding', ''] as const,
      ['x-forwarded-for', '203.0.113.7'] as const,
      ['x-forwarded-for', Buffer.from([0x31, 0xff])] as const,
      ['content-type', Buffer.concat([Buffer.from('application/json'), Buffer.of(0xff)])] as const,
      ['authorization', Buffer.concat([Buffer.from(`Bearer ${world.ownedKey}`), Buffer.of(0xff)])] as const,
      ['x-tenant-id', Buffer.from([0x61, 0xc3])] as const,
      ['upgrade', 'websocket'] as const,
      ['x_tenant_id', 'acme'] as const,
      ['x-postern-subject', 'me'] as const,
    ),
  },
);
const text = fc.string({ unit: fc.constantFrom('a', '!', 'é', '"', '\\', '\u0000', '\u{1f600}'), maxLength: 4 });
const json = fc
  .record(
    {
      model: fc.oneof(fc.constantFrom('llama-3-8b', 'secret-one', 'mo!del', 'né'), text),
      messages: fc.array(fc.record({ content: text })),
      max_tokens: fc.nat(2000),
      extra: text,
    },
    { requiredKeys: [] },
  )
  .map((value) => Buffer.from(JSON.stringify(value)));
const damaged = fc.tuple(json, fc.nat(), fc.constantFrom(0xff, 0xc3, 0x80, 0xed)).map(([bytes, at, byte]) => {
  const copy = Buffer.from(bytes);
  copy[at % copy.length] = byte;
  return copy;
});
const sent = fc.record({
  method: fc.constantFrom('POST', 'POST', 'POST', 'GET'),
  path: fc.constantFrom(
    ...new Array<string>(6).fill('/v1/chat/completions'),
    '/v1/models',
    '/v1/rag/query',
    '/v1/unknown',
  ),
  headers: fc
    .tuple(fc.boolean(), fc.array(header, { maxLength: 2 }))
    .map(([whole, more]) =>
      whole ? [['authorization', `Bearer ${world.tenantKey}`] as const, JSON_HEADER, ...more] : more,
    ),
  body: fc.oneof({ weight: 4, arbitrary: json }, { weight: 1, arbitrary: fc.constant(Buffer.alloc(0)) }),
});

describe('a request in the form of a plain profile', () => {
  test('is decided like the same request in raw form, or denied, if its body is UTF-8', async () => {
    const seen = { alike: 0, denied: 0, allowed: 0 };
    await fc.assert(
      fc.asyncProperty(sent, async (request) => {
        const [raw, plain] = [await bytesForm(request), await textForm(request)];
        if (plain.code === 0) {
          expect(told(plain)).toEqual(told(raw));
          seen.allowed++;
        } else if (JSON.stringify(told(plain)) === JSON.stringify(told(raw))) seen.alike++;
        else seen.denied++;
        expect(plain.status).not.toBe(503);
      }),
      { numRuns: runs(3000) },
    );
    expect(seen.allowed).toBeGreaterThanOrEqual(enough(40));
    expect(seen.alike).toBeGreaterThanOrEqual(enough(500));
  });

  test('names no model that its bytes do not name, if they are not UTF-8', async () => {
    await fc.assert(
      fc.asyncProperty(damaged, async (body) => {
        const headers = [['authorization', `Bearer ${world.tenantKey}`], JSON_HEADER] as const;
        const request = { method: 'POST', path: '/v1/chat/completions', headers, body };
        const [raw, plain] = [await bytesForm(request), await textForm(request)];
        if (raw.code === 0) expect(plain.code === 0 || plain.body['code'] === 'malformed_body').toBe(true);
        if (plain.code !== 0) return;
        // The model for the access log and the upstream is a part of the text without a replaced byte.
        const model = plain.metadata['model'] ?? '';
        expect(model).not.toContain('!');
        expect(model === 'llama-3-8b' || body.includes(JSON.stringify(model).slice(1, -1))).toBe(true);
      }),
      { numRuns: runs(1000) },
    );
  });

  test.each([
    ['two credentials', ['authorization', 'Bearer other'], 401, 'invalid_credential'],
    ['the same credential twice', ['authorization', `Bearer ${world.tenantKey}`], 401, 'invalid_credential'],
    ['two types of content', ['content-type', 'application/json'], 400, 'malformed_body'],
    ['a type of content that is not UTF-8', ['content-type', Buffer.of(0xff)], 400, 'malformed_body'],
    ['an encoding of its content', ['content-encoding', 'identity'], 400, 'malformed_body'],
  ] as const)('is denied with %s, which a map joins into one value', async (_name, more, status, code) => {
    const headers = [['authorization', `Bearer ${world.tenantKey}`], JSON_HEADER, more] as const;
    const body = Buffer.from('{"model":"llama-3-8b"}');
    const answer = await textForm({ method: 'POST', path: '/v1/chat/completions', headers, body });
    expect([answer.status, answer.body['code']]).toEqual([status, code]);
  });

  test('is decided without its context extensions, which no client and no decision has a part in', async () => {
    const body = Buffer.from('{"model":"llama-3-8b"}');
    const request = checkRequest({ headers: [JSON_HEADER], body: body.toString(), size: body.length });
    const extension = writeFields([
      [1, 'authorization'],
      [2, `Bearer ${world.tenantKey}`],
    ]);
    const extended = Buffer.concat([request, writeFields([[1, writeFields([[10, extension]])]])]);
    expect(told(await decide(extended))).toEqual(told(await decide(request)));
  });
});
