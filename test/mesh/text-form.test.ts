/** The checks that the Envoy of a plain profile sends: the facts that the reader of such checks relies on. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createRandom } from '../../bench/fuzz/random.ts';
import { type CheckServer, startCheckServer, valuesOf } from '../support/check-server.ts';
import { type Edge, startConfig } from '../support/envoy.ts';
import { type NamedServer, send, startNamedServer } from '../support/http.ts';
import { asText } from '../support/text-form.ts';
import { envoyGatewayBootstrap } from './support/envoy-gateway.ts';
import { envoyGatewayManifests } from './support/profiles.ts';

let checks: CheckServer;
let upstream: NamedServer;
let edge: Edge;

beforeAll(async () => {
  [checks, upstream] = await Promise.all([startCheckServer(), startNamedServer('upstream')]);
  const parts = { grpc: checks.address, http: upstream.address, upstream: upstream.address };
  edge = await startConfig(envoyGatewayBootstrap(envoyGatewayManifests(), parts));
});

afterAll(async () => {
  await edge?.stop();
  checks?.close();
  upstream?.close();
});

/** Pieces of UTF-8, and pieces that look like it. */
const PIECES = ['a', '!', 'é', '€', '\u{1f600}', '\u0000', '\ufeff'].map((text) => [...Buffer.from(text)]);
const BROKEN = [
  [0xff],
  [0x80],
  [0xc3],
  [0xe2, 0x82],
  [0xf0, 0x9f, 0x98],
  [0xed, 0xa0, 0x80],
  [0xc0, 0xaf],
  [0xf4, 0x90, 0x80, 0x80],
  [0xe0, 0x80, 0x80],
];

describe('Envoy without pack_as_bytes', () => {
  test('sends the body with an exclamation mark for each byte that is not UTF-8', async () => {
    const random = createRandom(7);
    const pieces = [...PIECES, ...BROKEN];
    for (let round = 0; round < 60; round++) {
      const body = Buffer.from(
        Array.from({ length: 1 + random.below(12) }, () => pieces[random.below(pieces.length)] ?? []).flat(),
      );
      const next = checks.next();
      await send(edge.url, { method: 'POST', path: '/v1/chat/completions', body });
      const { body: seen } = await next;
      expect([...seen]).toEqual([...Buffer.from(asText(body))]);
    }
  });

  test('says that a body is whole, also where it sends no partial ones, and says nothing of a request without a body', async () => {
    for (const [body, marks] of [
      ['{}', ['false']],
      [undefined, []],
    ] as const) {
      const next = checks.next();
      await send(edge.url, { method: 'POST', path: '/v1/chat/completions', ...(body === undefined ? {} : { body }) });
      expect(valuesOf(await next, 'x-envoy-auth-partial-body')).toEqual(marks);
    }
  });

  test('joins repeated headers by commas, and sends every header', async () => {
    const next = checks.next();
    const headers = { 'x-tenant-id': ['a', 'b'], 'x-anything': '1' };
    await send(edge.url, { path: '/v1/models', headers });
    const check = await next;
    expect([valuesOf(check, 'x-tenant-id'), valuesOf(check, 'x-anything')]).toEqual([['a,b'], ['1']]);
  });

  test('waits for an answer for the time that the guide sets', async () => {
    const next = checks.next();
    await send(edge.url, { path: '/v1/models' });
    const { timeoutMs } = await next;
    expect(timeoutMs).toBeLessThanOrEqual(500);
  });
});
