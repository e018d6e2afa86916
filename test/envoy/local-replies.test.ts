/** Envoy's own rejections: one shape with Postern's. Answers of Postern and of the upstream pass as they are. */

import { once } from 'node:events';
import { type OutgoingHttpHeaders, request } from 'node:http';
import { connect } from 'node:http2';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import type { ErrorCode } from '../../src/domain/errors.ts';
import { anthropicProblemDetails, problemDetails } from '../../src/domain/problem-details.ts';
import { type CheckServer, startCheckServer } from '../support/check-server.ts';
import { type Edge, type EditConfig, replacing, startEdge } from '../support/envoy.ts';
import { type Answer, type NamedServer, send, sendRaw, startServer } from '../support/http.ts';

const CHAT = '/v1/chat/completions';
/** In place of the 10 s of the file. */
const SHORT_LIMITS = replacing({
  'idle_timeout: 10s': 'idle_timeout: 0.5s',
  'request_headers_timeout: 10s': 'request_headers_timeout: 0.5s',
});

const HEAP = 'envoy.resource_monitors.fixed_heap';
const TRIGGERS = [{ name: HEAP, threshold: { value: 0.95 } }];
/** The ways in which production.yaml has Envoy answer when its heap is full. */
const OVERLOADS: Readonly<Record<string, object>> = {
  'requests are no longer accepted': {
    actions: [{ name: 'envoy.overload_actions.stop_accepting_requests', triggers: TRIGGERS }],
  },
  'HTTP/1 connections are no longer read': {
    loadshed_points: [{ name: 'envoy.load_shed_points.http1_server_abort_dispatch', triggers: TRIGGERS }],
  },
};

let checks: CheckServer;
let upstream: NamedServer;
let edge: Edge;

beforeAll(async () => {
  checks = await startCheckServer();
  // Answers with the status that the request names; 0 is no answer.
  upstream = await startServer((incoming, outgoing) => {
    incoming.resume();
    const status = Number(incoming.headers['x-status'] ?? 200);
    incoming.on('end', () => {
      if (status === 0) incoming.socket.destroy();
      else outgoing.writeHead(status, { 'content-type': 'text/plain' }).end(`the upstream's ${status}`);
    });
  });
  edge = await startEdge(partsOf(checks.address), SHORT_LIMITS);
});

afterAll(async () => {
  await edge.stop();
  checks.close();
  upstream.close();
});

beforeEach(() => {
  checks.answer = () => ({ kind: 'allow' });
  checks.seen.length = 0;
});

const partsOf = (grpc: string, http = upstream.address) => ({ grpc, http, upstream: http });

/** Reads an answer of HTTP/1.1 that was received as bytes. */
function parseRaw(reply: string): Answer {
  const [head = '', body = ''] = reply.split('\r\n\r\n');
  const [first = '', ...lines] = head.split('\r\n');
  const headers = lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]);
  return { status: Number(first.split(' ')[1]), headers: Object.fromEntries(headers), body };
}

const sendBytes = async (bytes: string): Promise<Answer> => parseRaw(await sendRaw(edge.port, bytes));

async function sendHttp2(sent: OutgoingHttpHeaders): Promise<Answer> {
  const session = connect(edge.url);
  const stream = session.request(sent);
  const [headers] = await once(stream, 'response');
  const chunks: Buffer[] = [];
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  await once(stream, 'end');
  session.destroy();
  return { status: Number(headers[':status']), headers: { ...headers }, body: Buffer.concat(chunks).toString() };
}

/** Expects the document that Postern writes for this code, with Envoy's status. */
function expectProblem(answer: Answer, status: number, code: ErrorCode): void {
  const body = JSON.parse(answer.body);
  expect(body).toEqual({ ...problemDetails(code, body.detail, body.request_id), status });
  expect(answer.headers['request-id']).toBeUndefined();
  expectHeaders(answer, body, status);
}

/** Expects the document that Postern writes for this code on /v1/messages, with Envoy's status. */
function expectAnthropicProblem(answer: Answer, status: number, code: ErrorCode): void {
  const body = JSON.parse(answer.body);
  expect(body).toEqual(anthropicProblemDetails({ ...problemDetails(code, body.detail, body.request_id), status }));
  expect(answer.headers['request-id']).toBe(answer.headers['x-request-id']);
  expectHeaders(answer, body, status);
}

function expectHeaders(
  answer: Answer,
  body: { readonly detail: unknown; readonly request_id: unknown },
  status: number,
): void {
  expect(typeof body.detail).toBe('string');
  expect(answer.status).toBe(status);
  expect(answer.headers['content-type']).toBe('application/problem+json');
  expect(answer.headers['cache-control']).toBe('no-store');
  expect(answer.headers['retry-after']).toBe(status === 503 || status === 429 ? '1' : undefined);
  // A client may repeat a request that it sent too slowly. No other request that Envoy rejects becomes valid when it is
  // repeated.
  const isRejected = status === 501 || (status < 500 && ![408, 413, 429].includes(status));
  expect(answer.headers['x-should-retry']).toBe(isRejected ? 'false' : undefined);
  // A request that Envoy rejects while it reads the headers has no id.
  expect(answer.headers['x-request-id'] ?? null).toBe(body.request_id);
}

describe('Envoy rejects with a problem document', () => {
  it.each<[string, number, () => Promise<Answer>]>([
    ['bytes that are no HTTP', 400, () => sendBytes('GARBAGE\r\n\r\n')],
    [
      'a request with two lengths of one body',
      400,
      () =>
        sendBytes(
          `POST ${CHAT} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
        ),
    ],
    ['a path with %00', 400, () => send(edge.url, { path: '/v1/%00' })],
    ['a header name with an underscore', 400, () => send(edge.url, { path: '/v1/models', headers: { x_y: '1' } })],
    ['headers that are not complete in time', 408, () => sendBytes('GET /v1/models HTTP/1.1\r\nHost: x\r\n')],
    [
      'an inspected body that is not complete in time',
      408,
      () => sendBytes(`POST ${CHAT} HTTP/1.1\r\nHost: x\r\nx-api-key: x\r\nContent-Length: 2\r\n\r\n{`),
    ],
    ['HTTP/1.0', 426, () => sendBytes('GET / HTTP/1.0\r\n\r\n')],
    [
      'a method of the whole server',
      404,
      () => sendBytes('OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'),
    ],
    ['CONNECT', 404, () => sendBytes('CONNECT x:443 HTTP/1.1\r\nHost: x:443\r\n\r\n')],
    ['CONNECT over HTTP/2', 404, () => sendHttp2({ ':method': 'CONNECT', ':authority': 'x:443' })],
    [
      'an upgrade to an unknown protocol',
      403,
      () => send(edge.url, { path: CHAT, headers: { connection: 'upgrade', upgrade: 'x' } }),
    ],
    [
      'an unknown transfer encoding',
      501,
      () => sendBytes(`POST ${CHAT} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n`),
    ],
    [
      'too large headers',
      431,
      () => send(edge.url, { path: '/v1/models', headers: { 'x-large': 'x'.repeat(40_000) } }),
    ],
  ])('%s: %i', async (_name, status, ask) => {
    const answer = await ask();
    expectProblem(answer, status, 'malformed_request');
    expect(JSON.parse(answer.body).detail).toMatch(/^Envoy rejected the request: [a-z0-9._]+\.$/);
    expect(checks.seen).toEqual([]);
  });

  it('a body larger than its buffer: 413', async () => {
    const small = await startEdge(partsOf(checks.address), replacing({ '1114112': '65536' }));
    try {
      expectProblem(
        await send(small.url, { method: 'POST', path: CHAT, headers: { 'x-api-key': 'x' }, body: 'x'.repeat(200_000) }),
        413,
        'body_too_large',
      );
    } finally {
      await small.stop();
    }
  });

  it.each(Object.keys(OVERLOADS))('every request while it is overloaded: 503 (%s)', async (name) => {
    const overloaded = await startEdge(partsOf(checks.address), withOverload(OVERLOADS[name] ?? {}));
    try {
      await expect.poll(async () => (await send(overloaded.url, { path: '/v1/models' })).status).toBe(503);
      expectProblem(await send(overloaded.url, { path: '/v1/models' }), 503, 'unavailable');
    } finally {
      await overloaded.stop();
    }
  });

  it('a request beyond a rate limit of its own: 429', async () => {
    const limited = await startEdge(partsOf(checks.address), withRateLimit);
    try {
      expect((await send(limited.url, { path: '/v1/models' })).status).toBe(200);
      expectProblem(await send(limited.url, { path: '/v1/models' }), 429, 'rate_limit_exceeded');
    } finally {
      await limited.stop();
    }
  });

  it.each(['fail', 'silent'] as const)('a request whose check has no answer: 503 (%s)', async (kind) => {
    checks.answer = () => ({ kind });
    expectProblem(await send(edge.url, { path: '/v1/models' }), 503, 'unavailable');
  });

  it('a request while no Postern or no upstream listens: 503', async () => {
    const gone = await startServer(() => undefined);
    gone.close();
    for (const parts of [{ ...partsOf(gone.address), isGrpcDown: true }, partsOf(checks.address, gone.address)]) {
      const orphan = await startEdge(parts);
      try {
        expectProblem(await send(orphan.url, { path: '/v1/models' }), 503, 'unavailable');
        expectProblem(await send(orphan.url, { path: '/v1/auth/login' }), 503, 'unavailable');
      } finally {
        await orphan.stop();
      }
    }
  });

  it('a request whose upstream breaks the connection: 503', async () => {
    expectProblem(await send(edge.url, { path: '/v1/models', headers: { 'x-status': '0' } }), 503, 'unavailable');
  });

  it('a request whose allow changes what it must not change: 500', async () => {
    checks.answer = () => ({ kind: 'allow', set: { ':path': '/changed' } });
    expectProblem(await send(edge.url, { path: '/v1/models' }), 500, 'unavailable');
  });

  it('with the CORS headers, so that a page can read why', async () => {
    checks.answer = () => ({ kind: 'fail' });
    const answer = await send(edge.url, { path: '/v1/models', headers: { origin: 'http://localhost:5173' } });
    expect(answer.headers['access-control-allow-origin']).toBe('http://localhost:5173');
    expectProblem(answer, 503, 'unavailable');
  });

  it('over HTTP/2 too', async () => {
    checks.answer = () => ({ kind: 'fail' });
    expectProblem(await sendHttp2({ ':path': '/v1/models' }), 503, 'unavailable');
  });
});

const MESSAGES = '/v1/messages';

describe('Envoy rejects on /v1/messages and below as Anthropic’s SDKs read it', () => {
  it.each<[string, number, () => Promise<Answer>]>([
    ['a path with %00', 400, () => send(edge.url, { path: `${MESSAGES}/%00` })],
    [
      'an upgrade to an unknown protocol',
      403,
      () => send(edge.url, { path: MESSAGES, headers: { connection: 'upgrade', upgrade: 'x' } }),
    ],
    [
      'a body that is not complete in time',
      408,
      () => sendBytes(`POST ${MESSAGES} HTTP/1.1\r\nHost: x\r\nx-api-key: x\r\nContent-Length: 2\r\n\r\n{`),
    ],
  ])('%s: %i', async (_name, status, ask) => {
    const answer = await ask();
    expectAnthropicProblem(answer, status, 'malformed_request');
    expect(JSON.parse(answer.body).detail).toMatch(/^Envoy rejected the request: [a-z0-9._]+\.$/);
  });

  it('a body larger than its buffer: 413', async () => {
    const small = await startEdge(partsOf(checks.address), replacing({ '1114112': '65536' }));
    try {
      const answer = await send(small.url, {
        method: 'POST',
        path: MESSAGES,
        headers: { 'x-api-key': 'x' },
        body: 'x'.repeat(200_000),
      });
      expectAnthropicProblem(answer, 413, 'body_too_large');
    } finally {
      await small.stop();
    }
  });

  it('a request beyond a rate limit of its own: 429', async () => {
    const limited = await startEdge(partsOf(checks.address), withRateLimit);
    try {
      expect((await send(limited.url, { path: MESSAGES })).status).toBe(200);
      expectAnthropicProblem(await send(limited.url, { path: MESSAGES }), 429, 'rate_limit_exceeded');
    } finally {
      await limited.stop();
    }
  });

  it.each([MESSAGES, `${MESSAGES}/`, `${MESSAGES}?beta=true`, `${MESSAGES}/batches/b`])(
    'a check that fails: 503 (%s)',
    async (path) => {
      checks.answer = () => ({ kind: 'fail' });
      expectAnthropicProblem(await send(edge.url, { path }), 503, 'unavailable');
    },
  );

  it('but not beside it', async () => {
    checks.answer = () => ({ kind: 'fail' });
    expectProblem(await send(edge.url, { path: `${MESSAGES}x` }), 503, 'unavailable');
    expectProblem(await send(edge.url, { path: `/v1/x?y=${MESSAGES}` }), 503, 'unavailable');
  });

  it('an allow that changes what it must not change: 500', async () => {
    checks.answer = () => ({ kind: 'allow', set: { ':path': '/changed' } });
    expectAnthropicProblem(await send(edge.url, { path: MESSAGES }), 500, 'unavailable');
  });
});

/** Makes any heap too large for these parts of an overload manager. */
function withOverload(parts: object): EditConfig {
  const heap = {
    name: HEAP,
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.resource_monitors.fixed_heap.v3.FixedHeapConfig',
      max_heap_size_bytes: 1,
    },
  };
  const overload_manager = { refresh_interval: '0.05s', resource_monitors: [heap], ...parts };
  return (text) => `${text}\n${stringify({ overload_manager })}`;
}

/** One request an hour. */
const withRateLimit: EditConfig = replacing({
  '          http_filters:\n': `          http_filters:
          - name: envoy.filters.http.local_ratelimit
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit
              stat_prefix: edge
              token_bucket: { max_tokens: 1, tokens_per_fill: 1, fill_interval: 3600s }
              filter_enabled: { default_value: { numerator: 100 } }
              filter_enforced: { default_value: { numerator: 100 } }
`,
});

describe('Envoy passes on as it is', () => {
  it.each([400, 401, 403, 413, 429, 503])('Postern’s own %i', async (status) => {
    const body = JSON.stringify({ code: 'of_postern' });
    const headers = {
      'content-type': 'application/problem+json',
      'www-authenticate': 'Bearer realm="postern"',
      'retry-after': '7',
      'x-request-id': 'req_1',
    };
    checks.answer = () => ({ kind: 'deny', status, body, headers });
    const answer = await send(edge.url, { path: '/v1/models' });
    expect(answer).toMatchObject({ status, body, headers });
    expect(answer.headers['content-length']).toBe(String(body.length));
  });

  it.each([400, 404, 408, 413, 429, 431, 500, 502, 503, 504])('the upstream’s %i', async (status) => {
    const answer = await send(edge.url, { path: '/v1/models', headers: { 'x-status': status } });
    expect(answer).toMatchObject({
      status,
      body: `the upstream's ${status}`,
      headers: { 'content-type': 'text/plain' },
    });
    expect(answer.headers['retry-after']).toBeUndefined();
  });

  it('an answer that has begun when its upstream breaks it off', async () => {
    const breaking = await startServer((incoming, outgoing) => {
      outgoing.writeHead(200, { 'content-type': 'text/event-stream' });
      outgoing.write('data: 1\n\n', () => incoming.socket.destroy());
    });
    const own = await startEdge(partsOf(checks.address, breaking.address));
    try {
      const outgoing = request({ host: '127.0.0.1', port: own.port, path: '/v1/models', agent: false }).end();
      const [incoming] = await once(outgoing, 'response');
      const chunks: Buffer[] = [];
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
      incoming.on('error', () => undefined);
      await new Promise((resolve) => incoming.once('close', resolve));
      expect(Buffer.concat(chunks).toString()).toBe('data: 1\n\n');
    } finally {
      await own.stop();
      breaking.close();
    }
  });
});
