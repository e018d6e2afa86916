import { once } from 'node:events';
import { request } from 'node:http';
import { connect } from 'node:http2';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type CheckServer, startCheckServer, valuesOf } from '../support/check-server.ts';
import { type Edge, startEdge } from '../support/envoy.ts';
import { type NamedServer, send, sendRaw, startNamedServer, startServer } from '../support/http.ts';

let checks: CheckServer;
let postern: NamedServer;
let upstream: NamedServer;
let edge: Edge;

beforeAll(async () => {
  [checks, postern, upstream] = await Promise.all([
    startCheckServer(),
    startNamedServer('postern'),
    startNamedServer('upstream'),
  ]);
  edge = await startEdge({ grpc: checks.address, http: postern.address, upstream: upstream.address });
});

afterAll(async () => {
  await edge.stop();
  checks.close();
  postern.close();
  upstream.close();
});

beforeEach(() => {
  checks.seen.length = 0;
  checks.answer = () => ({ kind: 'allow' });
});

const CHAT = '/v1/chat/completions';
/** In demo.yaml. */
const CHECK_TIMEOUT_MS = 3000;
const json = { 'content-type': 'application/json' };
/** Envoy sends no body of a request without a credential. */
const withCredential = { ...json, authorization: 'Bearer x' };

interface Echo {
  readonly server: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
}
const echoOf = (body: string): Echo => JSON.parse(body);

describe('a check that Envoy sends', () => {
  it('carries the headers that the decision reads, and no others', async () => {
    await send(edge.url, {
      path: '/v1/models',
      headers: {
        authorization: 'Bearer x',
        'x-tenant-id': 'acme',
        traceparent: '00-1-2-03',
        cookie: 'a=b',
        'user-agent': 'me',
      },
    });
    const [check] = checks.seen;
    expect(check?.method).toBe('GET');
    expect(check?.path).toBe('/v1/models');
    const names = check?.headers.map(([name]) => name).sort();
    expect(names).toEqual(['authorization', 'traceparent', 'x-forwarded-for', 'x-request-id', 'x-tenant-id']);
  });

  it('carries a request id that a client on the same network did not choose', async () => {
    await send(edge.url, { path: '/v1/models', headers: { 'x-request-id': 'chosen' } });
    expect(valuesOf(checks.seen[0] ?? expect.fail('no check'), 'x-request-id')).toEqual([
      expect.stringMatching(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/),
    ]);
  });

  it('carries the time that the check may take as grpc-timeout', async () => {
    await send(edge.url, { path: '/v1/models' });
    const { timeoutMs = 0 } = checks.seen[0] ?? expect.fail('no check');
    expect(timeoutMs).toBeGreaterThan(0);
    expect(timeoutMs).toBeLessThanOrEqual(CHECK_TIMEOUT_MS);
  });

  it('shows a repeated credential and a repeated tenant as what they are', async () => {
    const repeated = ['Authorization: Bearer a', 'Authorization: Bearer b', 'X-Tenant-ID: one', 'X-Tenant-ID: two'];
    await sendRaw(
      edge.port,
      ['GET /v1/models HTTP/1.1', 'Host: x', 'Connection: close', ...repeated, '', ''].join('\r\n'),
    );
    const check = checks.seen[0] ?? expect.fail('no check');
    // Envoy's parser joins the headers it has a fixed place for, and keeps the others apart.
    expect(valuesOf(check, 'authorization')).toEqual(['Bearer a,Bearer b']);
    expect(valuesOf(check, 'x-tenant-id')).toEqual(['one', 'two']);
  });

  it('appends the peer to X-Forwarded-For, last', async () => {
    await send(edge.url, { path: '/v1/models', headers: { 'x-forwarded-for': '203.0.113.9' } });
    const check = checks.seen[0] ?? expect.fail('no check');
    expect(valuesOf(check, 'x-forwarded-for')).toEqual(['203.0.113.9,127.0.0.1']);
  });

  it.each([
    CHAT,
    `${CHAT}/`,
    `${CHAT}?x=1`,
    '/v1/completions',
    '/v1/responses',
    '/v1/responses/compact',
    '/v1/responses/input_tokens',
    '/v1/embeddings',
    '/v1/rag/query',
    '/v1/rag/search',
    '/v1/finetuning/jobs',
    '/v1/fine_tuning/jobs',
    '/v1/images/generations',
    '/v1/audio/speech',
    '/v1/messages',
    '/v1/messages/count_tokens',
    '/v1/moderations',
    '/v1/rerank',
  ])('shows the body of POST %s, as bytes', async (path) => {
    const body = Buffer.from([0x7b, 0xff, 0x7d]);
    const answer = await send(edge.url, { method: 'POST', path, headers: withCredential, body });
    expect(answer.status).toBe(200);
    const check = checks.seen[0] ?? expect.fail('no check');
    expect(Buffer.from(check.body).equals(body)).toBe(true);
    expect(valuesOf(check, 'x-envoy-auth-partial-body')).toEqual(['false']);
    expect(valuesOf(check, 'content-type')).toEqual(['application/json']);
    expect(valuesOf(check, 'content-length')).toEqual(['3']);
  });

  it.each([
    ['PUT', CHAT],
    ['POST', '/v1/models'],
    ['POST', '/v1/rag/collections/hr/documents'],
    ['POST', '/v1/auth/login'],
    ['POST', '/v1/iam/users'],
  ])('keeps the body of %s %s to itself', async (method, path) => {
    await send(edge.url, { method, path, headers: withCredential, body: '{"secret":1}' });
    expect(checks.seen[0]?.body.length).toBe(0);
  });

  it('arrives before an endless body is complete, on routes whose decision needs no body', async () => {
    checks.answer = () => ({ kind: 'deny', status: 403, body: '{}' });
    const { port } = edge;
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const outgoing = request(
        { port, host: '127.0.0.1', method: 'POST', path: '/v1/rag/collections/hr/documents' },
        (incoming) => {
          resolve(incoming.statusCode);
          outgoing.destroy();
        },
      );
      outgoing.on('error', reject);
      // Never ended.
      outgoing.write('x'.repeat(4096));
    });
    expect(status).toBe(403);
    expect(checks.seen).toHaveLength(1);
  });

  it('lets Postern answer for a body over 1 MiB, marked as partial', async () => {
    checks.answer = () => ({ kind: 'deny', status: 413, body: '{"code":"body_too_large"}', headers: json });
    for (const headers of [
      { ...withCredential, 'content-length': 1_500_000 },
      { ...withCredential, 'transfer-encoding': 'chunked' },
    ]) {
      checks.seen.length = 0;
      const answer = await send(edge.url, { method: 'POST', path: CHAT, headers, body: Buffer.alloc(1_500_000, 0x20) });
      expect(answer.status).toBe(413);
      expect(answer.body).toBe('{"code":"body_too_large"}');
      const check = checks.seen[0] ?? expect.fail('no check');
      expect(valuesOf(check, 'x-envoy-auth-partial-body')).toEqual(['true']);
      expect(check.body.length).toBe(1_048_576);
    }
  });

  it('shows bodies of the same lengths when they come over HTTP/2, whose windows are small', async () => {
    for (const [bytes, shown, partial] of [
      [1_048_576, 1_048_576, 'false'],
      [1_500_000, 1_048_576, 'true'],
    ] as const) {
      checks.seen.length = 0;
      const session = connect(edge.url);
      const stream = session.request({ ':method': 'POST', ':path': CHAT, ...withCredential });
      stream.end(Buffer.alloc(bytes, 0x20));
      stream.resume();
      const [headers] = await once(stream, 'response');
      await once(stream, 'close');
      session.destroy();
      expect(headers[':status']).toBe(200);
      const check = checks.seen[0] ?? expect.fail('no check');
      expect(check.body.length).toBe(shown);
      expect(valuesOf(check, 'x-envoy-auth-partial-body')).toEqual([partial]);
    }
  });

  it('shows the beginning of a longer body as whole if it fills the buffer and more has not come', async () => {
    const session = connect(edge.url);
    const stream = session.request({ ':method': 'POST', ':path': CHAT, ...withCredential });
    stream.resume();
    stream.write(Buffer.alloc(1_048_576, 0x20));
    await expect.poll(() => checks.seen.length).toBe(1);
    stream.end('more');
    await once(stream, 'close');
    session.destroy();
    const check = checks.seen[0] ?? expect.fail('no check');
    expect(check.body.length).toBe(1_048_576);
    expect(valuesOf(check, 'x-envoy-auth-partial-body')).toEqual(['false']);
  });

  it('does not believe a client that marks its own body', async () => {
    await send(edge.url, { method: 'POST', path: '/v1/models', headers: { 'x-envoy-auth-partial-body': 'false' } });
    await send(edge.url, {
      method: 'POST',
      path: CHAT,
      headers: { ...withCredential, 'x-envoy-auth-partial-body': 'true' },
      body: '{}',
    });
    expect(checks.seen.map((check) => valuesOf(check, 'x-envoy-auth-partial-body'))).toEqual([[], ['false']]);
  });
});

describe('what upstream gets', () => {
  it.each([
    'x-postern-subject',
    'X-Postern-Roles',
    'x.postern.subject',
    'x-postern.tenant',
    'x-postern',
    'x-http-method-override',
    'x-http-method',
    'x-method-override',
    'x-original-url',
    'x-rewrite-url',
    'x-envoy-upstream-rq-timeout-ms',
    'x-envoy-original-path',
  ])('never the client’s %s, and Postern is not shown it', async (name) => {
    const answer = await send(edge.url, { path: '/v1/models', headers: { [name]: 'forged' } });
    expect(answer.status).toBe(200);
    expect(answer.body).not.toContain('forged');
    expect(checks.seen[0]?.headers.map(([key]) => key)).not.toContain(name.toLowerCase());
  });

  it.each([
    'X-Tenant.ID',
    'X.Tenant-ID',
    'X--Tenant-ID',
    '-x-tenant-id',
    'X~Tenant-ID-',
    'X.Api.Key',
    'Api--Key',
    'authorization-',
  ])('does not get the header %s, another spelling, and gets the true one', async (name) => {
    const headers = {
      'x-tenant-id': 'acme',
      'x-api-key': 'true',
      'api-key': 'true',
      authorization: 'true',
      [name]: 'forged',
    };
    const answer = await send(edge.url, { path: '/v1/models', headers });
    expect(answer.status).toBe(200);
    expect(answer.body).not.toContain('forged');
    expect(echoOf(answer.body).headers).toMatchObject({
      'x-tenant-id': 'acme',
      'x-api-key': 'true',
      'api-key': 'true',
    });
  });

  it.each(['x_postern_subject', 'x-postern_subject', 'X_Tenant_ID'])(
    'nothing at all of a request with %s',
    async (name) => {
      const answer = await send(edge.url, { path: '/v1/models', headers: { [name]: 'forged' } });
      expect(answer.status).toBe(400);
      expect(checks.seen).toHaveLength(0);
    },
  );

  it('what Postern sets, and not what Postern removes', async () => {
    checks.answer = () => ({
      kind: 'allow',
      set: { 'x-postern-subject': 'usr_1', 'x-postern-max-tokens': '10', 'x-tenant-id': 'acme' },
      remove: ['authorization', 'accept-encoding', 'x-http-method-override', 'x-original-url', 'x_postern_subject'],
    });
    const headers = {
      authorization: 'Bearer x',
      'accept-encoding': 'gzip',
      'x-tenant-id': 'other',
      'x-postern-subject': 'forged',
    };
    const answer = await send(edge.url, { path: '/v1/models', headers });
    expect(answer.status).toBe(200);
    const echo = echoOf(answer.body);
    expect(echo.headers).toMatchObject({
      'x-postern-subject': 'usr_1',
      'x-postern-max-tokens': '10',
      'x-tenant-id': 'acme',
    });
    expect(echo.headers).not.toHaveProperty('authorization');
    expect(echo.headers).not.toHaveProperty('accept-encoding');
  });

  it.each(['host', ':path', 'cookie', 'x-forwarded-for', 'x-envoy-original-path'])(
    'no change of %s, whatever the check answers',
    async (name) => {
      checks.answer = () => ({ kind: 'allow', set: { [name]: '/changed' } });
      const answer = await send(edge.url, { path: '/v1/models' });
      expect(answer.status).toBe(500);
      expect(answer.body).not.toContain('changed');
    },
  );

  it('an upgrade only after the check, which sees that it is one', async () => {
    checks.answer = () => ({ kind: 'deny', status: 403, body: '{}' });
    const answer = await send(edge.url, {
      path: '/v1/agents/a1/live',
      headers: { connection: 'upgrade', upgrade: 'websocket' },
    });
    expect(answer.status).toBe(403);
    const check = checks.seen[0] ?? expect.fail('no check');
    expect(valuesOf(check, 'upgrade')).toEqual(['websocket']);
  });
});

describe('where a request goes', () => {
  it.each([
    '/v1/auth/login',
    '/v1/auth',
    '/v1/iam/users?limit=1',
    '/console',
    '/console/',
    '/console/app.js',
    '/docs',
    '/docs/x',
    '/openapi.json',
    '/openapi.json/',
    '/.well-known/jwks.json',
    '/.well-known/jwks.json/',
    '/.well-known/openid-configuration',
    '/v1//auth/login',
    '/v1/./auth/login',
    '/v1/models/../auth/login',
    '/v1/%61uth/login',
    '/v1/auth%2flogin',
    '/v1%5cauth/login',
    '/v1/models/..%2fauth/login',
  ])('%s: to Postern, after the check', async (path) => {
    const answer = await send(edge.url, { path });
    expect(echoOf(answer.body).server).toBe('postern');
    expect(checks.seen).toHaveLength(1);
  });

  it.each([
    '/v1/authx',
    '/v1/auth-x',
    '/v1/auth%20/login',
    '/v1/auth;x/login',
    '/V1/auth/login',
    '/v1/iamx/users',
    '/consoles',
    '/docsx',
    '/openapi.jsonx',
    '/openapi-json',
    '/.well-known/jwks.json/x',
    '/.well-known/openid-configurations',
    '/v1/auth/../models',
    '/',
    '/ledger',
  ])('%s: to the upstream, after the check', async (path) => {
    const answer = await send(edge.url, { path });
    expect(echoOf(answer.body).server).toBe('upstream');
    expect(checks.seen).toHaveLength(1);
  });

  it.each(['/v1/%00', '/v1/models/org%2f%00'])('%s: nowhere', async (path) => {
    const answer = await send(edge.url, { path });
    expect(answer.status).toBe(400);
    expect(checks.seen).toHaveLength(0);
  });

  it.each([
    ['/v1/models/org%2Fname', '/v1/models/org/name'],
    ['/v1/models/org%5Cname', '/v1/models/org/name'],
    ['/v1/models%2f%2Forg%2f%2e%2fname', '/v1/models/org/name'],
    ['/v1/models/..%2frag/collections', '/v1/rag/collections'],
    ['/v1/models/a%5c..%5c..%5crag', '/v1/rag'],
  ])('is decided and forwarded as one path, its escaped slashes unescaped: %s', async (path, seen) => {
    const answer = await send(edge.url, { path });
    expect([checks.seen[0]?.path, echoOf(answer.body).path]).toEqual([seen, seen]);
  });

  it('shows the body of a POST whose slashes are escaped', async () => {
    await send(edge.url, {
      method: 'POST',
      path: '/v1%2frag%2Fquery',
      headers: withCredential,
      body: '{"collection":"hr"}',
    });
    expect(Buffer.from(checks.seen[0]?.body ?? '').toString()).toBe('{"collection":"hr"}');
  });

  it('is decided about under the same path that the upstream gets', async () => {
    const answer = await send(edge.url, { path: '/v1//models/./x/..//llama?a=/../b' });
    expect(echoOf(answer.body).path).toBe('/v1/models/llama?a=/../b');
    expect(checks.seen[0]?.path).toBe('/v1/models/llama?a=/../b');
  });
});

describe('CORS', () => {
  const preflight = { origin: 'http://localhost:5173', 'access-control-request-method': 'POST' };

  it.each([CHAT, '/v1/auth/login'])('answers the preflight of %s without asking Postern', async (path) => {
    const answer = await send(edge.url, { method: 'OPTIONS', path, headers: preflight });
    expect(answer.status).toBe(200);
    expect(answer.headers['access-control-allow-origin']).toBe('http://localhost:5173');
    expect(answer.headers['access-control-allow-headers']).toContain('authorization');
    expect(answer.headers).not.toHaveProperty('access-control-allow-credentials');
    expect(checks.seen).toHaveLength(0);
  });

  it('allows a page every header that the SDKs of OpenAI and Anthropic send', async () => {
    const sent = new Set<string>();
    const recording: typeof fetch = async (_url, init) => {
      for (const [name] of new Headers(init?.headers)) sent.add(name);
      return Response.json({ content: [], choices: [] });
    };
    const options = { apiKey: 'k', baseURL: edge.url, fetch: recording, dangerouslyAllowBrowser: true };
    const anthropic = new Anthropic(options);
    const openai = new OpenAI({ ...options, organization: 'o', project: 'p' });
    await anthropic.messages.create({ model: 'm', max_tokens: 1, messages: [] });
    await anthropic.beta.messages.create({ model: 'm', max_tokens: 1, messages: [], betas: ['some-beta'] });
    await openai.chat.completions.create({ model: 'm', messages: [] });
    await openai.beta.threads.create({});
    expect([...sent]).toEqual(expect.arrayContaining(['anthropic-version', 'openai-organization', 'x-stainless-lang']));
    const answer = await send(edge.url, {
      method: 'OPTIONS',
      path: CHAT,
      headers: { ...preflight, 'access-control-request-headers': [...sent].join(',') },
    });
    const allowed = new Set(String(answer.headers['access-control-allow-headers']).split(/, */));
    expect([...sent].filter((name) => !allowed.has(name))).toEqual([]);
  });

  it('lets a page send every header of a request to the API, and read every header of an answer', async () => {
    const answer = await send(edge.url, { method: 'OPTIONS', path: '/v1/iam/api-keys', headers: preflight });
    expect(String(answer.headers['access-control-allow-headers']).split(/, */)).toEqual(
      expect.arrayContaining(['idempotency-key', 'if-match', 'if-none-match', 'prefer', 'x-tenant-id']),
    );
    const { headers } = await send(edge.url, { path: '/v1/models', headers: { origin: preflight.origin } });
    const limits = ['requests', 'tokens'].flatMap((unit) =>
      ['limit', 'remaining', 'reset'].map((number) => `x-ratelimit-${number}-${unit}`),
    );
    const applied = ['preference-applied', 'x-postern-pending-replicas'];
    expect(String(headers['access-control-expose-headers']).split(/, */)).toEqual(
      expect.arrayContaining(['etag', 'location', 'x-postern-budget-remaining', ...applied, ...limits]),
    );
  });

  it('asks Postern about a preflight of an origin that is not allowed', async () => {
    checks.answer = () => ({ kind: 'deny', status: 403, body: '{}' });
    const answer = await send(edge.url, {
      method: 'OPTIONS',
      path: CHAT,
      headers: { ...preflight, origin: 'http://localhost.evil' },
    });
    expect(answer.status).toBe(403);
    expect(answer.headers).not.toHaveProperty('access-control-allow-origin');
  });

  it('lets a page read why it was refused', async () => {
    checks.answer = () => ({
      kind: 'deny',
      status: 401,
      body: '{"code":"missing_credential"}',
      headers: { 'www-authenticate': 'Bearer' },
    });
    const answer = await send(edge.url, { path: '/v1/models', headers: { origin: 'http://localhost:5173' } });
    expect(answer.status).toBe(401);
    expect(answer.headers['access-control-allow-origin']).toBe('http://localhost:5173');
    expect(answer.headers['www-authenticate']).toBe('Bearer');
    expect(answer.body).toBe('{"code":"missing_credential"}');
  });
});

describe('a stream', () => {
  it('reaches the client piece by piece', async () => {
    let finish: (() => void) | undefined;
    const streaming = await startServer((_incoming, outgoing) => {
      outgoing.writeHead(200, { 'content-type': 'text/event-stream' });
      outgoing.write('data: 1\n\n');
      finish = () => outgoing.end('data: 2\n\n');
    });
    const own = await startEdge({ grpc: checks.address, http: postern.address, upstream: streaming.address });
    try {
      const response = await fetch(`${own.url}${CHAT}`, { method: 'POST', headers: json, body: '{"stream":true}' });
      const pieces: string[] = [];
      for await (const piece of response.body ?? []) {
        pieces.push(Buffer.from(piece).toString());
        // Only what arrived here lets the upstream go on.
        finish?.();
      }
      expect(pieces).toEqual(['data: 1\n\n', 'data: 2\n\n']);
    } finally {
      await own.stop();
      streaming.close();
    }
  });
});

describe('a check without an answer', () => {
  it.each(['fail', 'silent'] as const)('is a 503, never an allow: %s', async (kind) => {
    checks.answer = () => ({ kind });
    const answer = await send(edge.url, { path: '/v1/models' });
    expect(answer.status).toBe(503);
    expect(answer.body).not.toContain('upstream"');
  });

  it('is a 503 if no server listens', async () => {
    const gone = await startCheckServer();
    gone.close();
    const parts = { grpc: gone.address, http: postern.address, upstream: upstream.address };
    const orphan = await startEdge({ ...parts, isGrpcDown: true });
    try {
      expect((await send(orphan.url, { path: '/v1/models' })).status).toBe(503);
      expect((await send(orphan.url, { path: '/v1/auth/login' })).status).toBe(503);
    } finally {
      await orphan.stop();
    }
  });
});

it('refuses two lengths of one body', async () => {
  const reply = await sendRaw(
    edge.port,
    `POST ${CHAT} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
  );
  expect(reply).toMatch(/^HTTP\/1\.1 400 /);
  expect(checks.seen).toHaveLength(0);
});
