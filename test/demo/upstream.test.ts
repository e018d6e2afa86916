import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { LedgerReport } from '../../src/demo/ledger.ts';
import { startUpstream, type Upstream } from '../../src/demo/upstream.ts';
import { type Call, send } from '../support/http.ts';

let upstream: Upstream;
let url: string;

beforeAll(async () => {
  upstream = await startUpstream('127.0.0.1', 0);
  url = `http://127.0.0.1:${upstream.port}`;
});

afterAll(() => upstream.close());

const HELLO = { messages: [{ role: 'user', content: 'Hello there' }] };

function post(path: string, body: unknown, headers: Call['headers'] = {}) {
  return send(url, {
    method: 'POST',
    path,
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
}

async function ledger(): Promise<LedgerReport> {
  return JSON.parse((await send(url, { path: '/ledger' })).body);
}

/** The JSON of each event but the closing [DONE]. */
function events(body: string) {
  const lines = body.split('\n').filter((line) => line.startsWith('data: '));
  return lines.filter((line) => line !== 'data: [DONE]').map((line) => JSON.parse(line.slice('data: '.length)));
}

describe('every route of the platform is answered', () => {
  it.each([
    ['POST', '/v1/chat/completions', 'chat.completion'],
    ['GET', '/v1/chat/history', 'demo'],
    ['POST', '/v1/completions', 'text_completion'],
    ['POST', '/v1/responses', 'response'],
    ['POST', '/v1/embeddings', 'list'],
    ['GET', '/v1/models', 'list'],
    ['GET', '/v1/models/meta/llama-3', 'model'],
    ['DELETE', '/v1/models/llama-3', 'deleted'],
    ['GET', '/v1/rag/collections', 'list'],
    ['POST', '/v1/rag/query', 'list'],
    ['POST', '/v1/rag/search', 'list'],
    ['POST', '/v1/rag/collections/hr/query', 'list'],
    ['GET', '/v1/rag/collections/hr/documents', 'list'],
    ['POST', '/v1/rag/collections/hr/documents', 'demo'],
    ['GET', '/v1/agents', 'list'],
    ['POST', '/v1/agents/helper/runs', 'agent.run'],
    ['POST', '/v1/finetuning/jobs', 'fine_tuning.job'],
    ['GET', '/v1/fine_tuning/jobs/', 'list'],
    ['PATCH', '/v2/whatever', 'demo'],
  ])('%s %s', async (method, path, object) => {
    const answer = await send(url, {
      method,
      path,
      headers: { 'x-postern-tenant': 'acme' },
      body: method.startsWith('P') ? '{}' : '',
    });
    expect(answer.status).toBe(200);
    const body = JSON.parse(answer.body);
    expect(body.object).toBe(object);
    expect(body.x_echo).toMatchObject({ 'x-postern-tenant': 'acme' });
  });
});

describe('usage', () => {
  it('is in every answer of a model and in the ledger, with the subject that Postern named', async () => {
    const before = await ledger();
    const headers = { 'x-postern-tenant': 'acme', 'x-postern-subject': 'key_1' };
    const { usage, id } = JSON.parse((await post('/v1/chat/completions', { ...HELLO, model: 'm1' }, headers)).body);
    expect(usage.total_tokens).toBe(usage.prompt_tokens + usage.completion_tokens);
    const after = await ledger();
    expect(after.total.total_tokens - before.total.total_tokens).toBe(usage.total_tokens);
    expect(after.data.at(-1)).toMatchObject({
      id,
      ...usage,
      model: 'm1',
      tenant: 'acme',
      subject: 'key_1',
      stream: false,
    });
  });

  it('comes in a stream only if the request asks for it, and only then the ledger has it', async () => {
    const before = (await ledger()).total.requests;
    const silent = events((await post('/v1/chat/completions', { ...HELLO, stream: true })).body);
    expect(silent.some((event) => 'usage' in event)).toBe(false);
    expect((await ledger()).total.requests).toBe(before);
    const told = events(
      (await post('/v1/chat/completions', { ...HELLO, stream: true, stream_options: { include_usage: true } })).body,
    );
    expect(told.at(-1)).toMatchObject({ choices: [], usage: { total_tokens: expect.any(Number) } });
    expect((await ledger()).data.at(-1)).toMatchObject({ ...told.at(-1).usage, stream: true });
  });

  it('is in the last event of a response that streams', async () => {
    const told = events((await post('/v1/responses', { input: 'Hello', stream: true })).body);
    expect(told.map((event) => event.type)).toContain('response.output_text.delta');
    expect(told.at(-1)).toMatchObject({
      type: 'response.completed',
      response: { usage: { total_tokens: expect.any(Number) } },
    });
  });

  it('grows with the number of choices and stops at the smallest limit', async () => {
    const one = JSON.parse((await post('/v1/chat/completions', { ...HELLO, max_tokens: 3 })).body);
    expect(one.usage.completion_tokens).toBe(3);
    expect(one.choices[0].finish_reason).toBe('length');
    const two = JSON.parse((await post('/v1/chat/completions', { ...HELLO, max_tokens: 3, n: 2 })).body);
    expect(two.usage.completion_tokens).toBe(6);
    const capped = JSON.parse(
      (await post('/v1/chat/completions', { ...HELLO, max_tokens: 3 }, { 'x-postern-max-tokens': '2' })).body,
    );
    expect(capped.usage.completion_tokens).toBe(2);
  });
});

describe('streams', () => {
  it.each(['/v1/chat/completions', '/v1/completions'])(
    '%s: pieces that make up the whole answer, then [DONE]',
    async (path) => {
      const whole = JSON.parse((await post(path, { ...HELLO, prompt: 'Hello', model: 'm1' })).body);
      const answer = await post(path, { ...HELLO, prompt: 'Hello', model: 'm1', stream: true });
      expect(answer.headers['content-type']).toBe('text/event-stream');
      expect(answer.body.endsWith('data: [DONE]\n\n')).toBe(true);
      const text = events(answer.body)
        .map(({ choices }) => choices[0]?.delta?.content ?? choices[0]?.text ?? '')
        .join('');
      expect(text).toBe(whole.choices[0].message?.content ?? whole.choices[0].text);
    },
  );

  it('have the headers in the first event only', async () => {
    const answer = await post('/v1/chat/completions', { ...HELLO, stream: true }, { 'x-postern-tenant': 'acme' });
    const [first, ...rest] = events(answer.body);
    expect(first.x_echo).toMatchObject({ 'x-postern-tenant': 'acme' });
    expect(rest.some((event) => 'x_echo' in event)).toBe(false);
  });
});

it('uses the default model that Postern names when the body names none', async () => {
  const headers = { 'x-postern-default-model': 'llama-3-70b' };
  expect(JSON.parse((await post('/v1/chat/completions', HELLO, headers)).body).model).toBe('llama-3-70b');
  expect(JSON.parse((await post('/v1/chat/completions', { ...HELLO, model: 'm1' }, headers)).body).model).toBe('m1');
});

it('compresses its answer only if the client accepts gzip', async () => {
  const response = await fetch(`${url}/v1/models`, { headers: { 'accept-encoding': 'identity' } });
  expect(response.headers.get('content-encoding')).toBeNull();
  const packed = await send(url, { path: '/v1/models', headers: { 'accept-encoding': 'gzip' }, binary: true });
  expect(packed.headers['content-encoding']).toBe('gzip');
  expect(JSON.parse(gunzipSync(Buffer.from(packed.body, 'latin1')).toString()).object).toBe('list');
});

it('refuses a body past its bound instead of keeping it', async () => {
  const answer = await send(url, {
    method: 'POST',
    path: '/v1/rag/collections/hr/documents',
    body: Buffer.alloc(65 * 1024 * 1024),
  });
  expect(answer.status).toBe(413);
});

describe('fails as x-demo asks it to, and keeps that out of the ledger', () => {
  const fail = (how: string, body: object = HELLO) => post('/v1/chat/completions', body, { 'x-demo': how });

  it.each([
    [`status=500`, 500],
    [`status=429`, 429],
    [`status=200`, 200],
    ['status=abc', 200],
    ['nothing', 200],
  ])('%s', async (how, status) => {
    const before = (await ledger()).total.requests;
    expect((await fail(how)).status).toBe(status);
    expect((await ledger()).total.requests - before).toBe(status === 200 ? 1 : 0);
  });

  it.each([HELLO, { ...HELLO, stream: true, stream_options: { include_usage: true } }])(
    'by breaking off, with and without an answer begun: %j',
    async (body) => {
      const before = (await ledger()).total.requests;
      await expect(fail('close-after=2', body)).rejects.toThrow();
      await expect(fail('close-after=0', body)).rejects.toThrow();
      expect((await ledger()).total.requests).toBe(before);
    },
  );
});

it('names a model of as many bytes as x-demo says, at most 1,000,000', async () => {
  for (const [asked, bytes] of [
    [40_001, 40_001],
    [9_999_999, 1_000_000],
  ]) {
    const answer = await post('/v1/chat/completions', HELLO, { 'x-demo': `long-model=${asked}` });
    const { model } = JSON.parse(answer.body);
    expect(Buffer.byteLength(model)).toBe(bytes);
  }
});
