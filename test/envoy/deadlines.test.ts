/**
 * The answer to a client if Postern cannot decide in time, and the checks that Envoy cancels, with the production
 * timeout.
 */

import { readFile } from 'node:fs/promises';
import { request } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { placeAddresses } from '../../src/cli/envoy-config.ts';
import type { Resolution } from '../../src/credential-cache/resolution.ts';
import { createCheckHandler } from '../../src/extauthz/check-handler.ts';
import { type ExtAuthzServer, startExtAuthz } from '../../src/extauthz/server.ts';
import { builtinRoutes, littleWorld } from '../extauthz/support/little-world.ts';
import { DEMO_CONFIG, type Edge, startConfig } from '../support/envoy.ts';
import { type NamedServer, send, startNamedServer } from '../support/http.ts';

const world = littleWorld();
const never = new Promise<never>(() => undefined);
const CHAT = '/v1/chat/completions';
const headers = { authorization: `Bearer ${world.ownedKey}`, 'content-type': 'application/json' };

let upstream: NamedServer;
let checks: ExtAuthzServer;
let edge: Edge;
/** The promise that a lookup awaits; undefined: none. */
let lookup: Promise<Resolution> | undefined;
/** The same for the limits. */
let admission: Promise<void> | undefined;
let asked = 0;
let released = 0;

beforeAll(async () => {
  upstream = await startNamedServer('upstream');
  const admitted = { kind: 'admitted', reservation: 'ab'.repeat(23), rate: undefined } as const;
  const gate = createCheckHandler({
    routes: builtinRoutes(),
    resolver: { resolve: (...given) => lookup ?? world.resolver.resolve(...given) },
    limiter: {
      admit() {
        asked += 1;
        return admission === undefined ? admitted : admission.then(() => admitted);
      },
      release() {
        released += 1;
      },
    },
    observer: { observe: () => undefined },
    trustedHops: 0,
    forwardCredential: false,
  });
  checks = await startExtAuthz(gate, { listen: '127.0.0.1:0' });
  checks.setReady(true);
  const demo = await readFile(DEMO_CONFIG, 'utf8');
  // The check's timeout of production.yaml.
  const text = demo.replace(/^( +)timeout: 3s$/m, '$1timeout: 0.5s');
  expect(text).not.toBe(demo);
  const places = {
    edge: '127.0.0.1:0',
    'postern-grpc': checks.address,
    'postern-http': upstream.address,
    upstream: upstream.address,
  };
  edge = await startConfig(placeAddresses(text, { admin: '127.0.0.1:0', places }));
});

afterAll(async () => {
  await edge.stop();
  await checks.drain(100);
  upstream.close();
});

beforeEach(() => {
  lookup = undefined;
  admission = undefined;
  asked = 0;
  released = 0;
});

describe('behind Envoy, whose check times out after 0.5 s', () => {
  it.each(['lookup', 'admission'])(
    'a %s that never answers is 503 as a problem document, with Retry-After',
    async (what) => {
      if (what === 'lookup') lookup = never;
      else admission = never;
      const answer = await send(edge.url, { method: 'POST', path: CHAT, headers, body: '{"model":"m"}' });
      expect(answer.status).toBe(503);
      expect(answer.headers['retry-after']).toBe('1');
      expect(answer.headers['content-type']).toBe('application/problem+json');
      expect(JSON.parse(answer.body)).toMatchObject({ code: 'unavailable' });
    },
  );

  it('a check whose client goes away while it waits releases what it is given', async () => {
    const gate = Promise.withResolvers<void>();
    admission = gate.promise;
    const gone = request(`${edge.url}${CHAT}`, { method: 'POST', headers });
    gone.on('error', () => undefined);
    gone.end('{"model":"m"}');
    await expect.poll(() => asked).toBe(1);
    const { cancelled } = checks.calls;
    gone.destroy();
    await expect.poll(() => checks.calls.cancelled).toBe(cancelled + 1);
    gate.resolve();
    await expect.poll(() => released).toBe(1);
  });

  it('a check that is answered releases nothing', async () => {
    const answer = await send(edge.url, { method: 'POST', path: CHAT, headers, body: '{"model":"m"}' });
    expect([answer.status, asked, released]).toEqual([200, 1, 0]);
  });
});
