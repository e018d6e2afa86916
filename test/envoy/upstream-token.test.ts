/** The filter of `envoy/upstream-token.yaml` in a real Envoy, behind the real gate. */

import { readFile } from 'node:fs/promises';
import { createLocalJWKSet, decodeProtectedHeader, jwtVerify } from 'jose';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { verifyingUpstreamToken } from '../../src/cli/envoy-upstream-token.ts';
import { type CheckHandler, createCheckHandler } from '../../src/extauthz/check-handler.ts';
import type { UpstreamTokenHeader } from '../../src/extauthz/header-spellings.ts';
import { createRandomPool } from '../../src/extauthz/random-pool.ts';
import { type ExtAuthzServer, startExtAuthz } from '../../src/extauthz/server.ts';
import { UpstreamHeaders } from '../../src/extauthz/upstream-headers.ts';
import { OPTIONAL_CLAIMS, UpstreamTokens } from '../../src/identity/upstream-token.ts';
import { builtinRoutes, littleWorld, USER_ID } from '../extauthz/support/little-world.ts';
import { type SigningRing, signingRing } from '../identity/support/signing-ring.ts';
import { type Edge, replacing, startEdge, statOf } from '../support/envoy.ts';
import { type NamedServer, send, startNamedServer, startServer } from '../support/http.ts';

const AUDIENCE = 'models';
const HOUR_MS = 3_600_000;
const FILTER = new URL('../../envoy/upstream-token.yaml', import.meta.url);
/** A route that the keys of the little world may use. */
const CHAT = replacing({ '/v1/agents/[^/]+/runs(/.*)?': '/v1/chat/completions' });

const world = littleWorld({});
let ring: SigningRing;
let decide: CheckHandler;
let checks: ExtAuthzServer;
let postern: NamedServer;
let upstream: NamedServer;
let edge: Edge;

/** A gate whose tokens have this audience and header. */
function gateFor(audience: string, header: UpstreamTokenHeader = 'x-postern-token'): CheckHandler {
  const { keys, time } = ring;
  const names = { issuer: 'https://ai.example.com', audience, accessAudience: 'platform' };
  return createCheckHandler({
    routes: builtinRoutes(),
    resolver: world.resolver,
    observer: { observe: () => undefined },
    trustedHops: 0,
    forwardCredential: false,
    now: () => time.nowMs,
    upstreamHeaders: new UpstreamHeaders({
      tokens: new UpstreamTokens({ keys, ...names, ttlSeconds: 300, claims: OPTIONAL_CLAIMS }),
      header,
      isPublished: (kid) => keys.isPublished(kid),
      random: createRandomPool(),
    }),
  });
}

beforeAll(async () => {
  ring = await signingRing(Date.now());
  // Published before Envoy reads the keys, and it signs a day later.
  await ring.rotate();
  [checks, postern, upstream] = await Promise.all([
    startExtAuthz((bytes, call) => decide(bytes, call), { listen: '127.0.0.1:0' }),
    startServer((_incoming, outgoing) => outgoing.end(JSON.stringify({ keys: ring.keys.published() }))),
    startNamedServer('upstream'),
  ]);
  checks.setReady(true);
  const filter = CHAT(await readFile(FILTER, 'utf8'));
  edge = await startEdge({ grpc: checks.address, http: postern.address, upstream: upstream.address }, (text) =>
    verifyingUpstreamToken(text, filter, { audience: AUDIENCE, header: 'x-postern-token' }),
  );
});
afterAll(async () => {
  await edge?.stop();
  await checks?.drain(100);
  postern?.close();
  upstream?.close();
});
beforeEach(() => {
  decide = gateFor(AUDIENCE);
});

const ask = (headers: Readonly<Record<string, string>> = {}, path = '/v1/chat/completions') =>
  send(edge.url, {
    method: 'POST',
    path,
    headers: { authorization: `Bearer ${world.ownedKey}`, 'content-type': 'application/json', ...headers },
    body: '{"model":"llama-3","messages":[]}',
  });
const seen = (body: string): Readonly<Record<string, string>> => JSON.parse(body).headers;

describe('the Envoy in front of the platform', () => {
  it('verifies the token, and the platform gets it in place of the credential', async () => {
    const answer = await ask({ 'x-postern-token': 'eyJmine' });
    expect(answer.status, answer.body).toBe(200);
    const { authorization, 'x-postern-token': token = '' } = seen(answer.body);
    expect(authorization).toBeUndefined();
    const keys = createLocalJWKSet(JSON.parse(JSON.stringify({ keys: ring.keys.published() })));
    const { payload } = await jwtVerify(token, keys, { audience: AUDIENCE, typ: 'postern-upstream+jwt' });
    expect(payload).toMatchObject({ sub: USER_ID, tenant_id: 'acme' });
    expect(await statOf(edge, 'http.edge.jwt_authn.allowed')).toBeGreaterThan(0);
  });

  it('rejects a token of another platform, and a request without a token', async () => {
    decide = gateFor('another platform');
    expect((await ask()).status).toBe(403);
    decide = gateFor(AUDIENCE, 'authorization');
    expect((await ask()).status).toBe(401);
    decide = gateFor(AUDIENCE);
    expect((await ask()).status).toBe(200);
  });

  it('passes the token in authorization, where it replaces the credential of the client', async () => {
    decide = gateFor(AUDIENCE, 'authorization');
    const answer = await ask({ 'x-postern-token': 'eyJmine' }, '/v1/messages');
    expect(answer.status, answer.body).toBe(200);
    const { authorization = '', 'x-postern-token': other } = seen(answer.body);
    expect(other).toBeUndefined();
    expect(decodeProtectedHeader(authorization.replace('Bearer ', ''))).toMatchObject({ typ: 'postern-upstream+jwt' });
  });

  it('rejects no request while another key takes over, with keys that it read before', async () => {
    const kids = new Set<string>();
    for (let hour = 0; hour < 30; hour++) {
      const answers = await Promise.all([ask(), ask(), ask()]);
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
      for (const { body } of answers)
        kids.add(decodeProtectedHeader(seen(body)['x-postern-token'] ?? '').kid ?? 'no kid');
      ring.time.nowMs += HOUR_MS;
    }
    expect(kids.size).toBe(2);
  });
});
