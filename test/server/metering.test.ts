/**
 * Limits and usage through everything: a real Envoy, the whole server as a process, a real PostgreSQL, and an upstream
 * with a ledger.
 */

import { once } from 'node:events';
import { type ClientRequest, request } from 'node:http';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { LedgerReport } from '../../src/demo/ledger.ts';
import type { Upstream } from '../../src/demo/upstream.ts';
import type { FreshDatabase } from '../support/database.ts';
import { type Edge, statOf } from '../support/envoy.ts';
import { type Answer, send } from '../support/http.ts';
import { call, done, makeKey } from './support/client.ts';
import { eventually } from './support/eventually.ts';
import { openPlatform, type Platform } from './support/platform.ts';
import { metric, type Server } from './support/postern.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

let platform: Platform;
let database: FreshDatabase;
let server: Server;
let upstream: Upstream;
let edge: Edge;
let admin: string;

beforeAll(async () => {
  // No test sees a window end.
  platform = await openPlatform({ POSTERN_LIMITS_WINDOW: '365d', POSTERN_LIMITS_TOKEN_ESTIMATE: '1000' });
  ({ database, server, upstream, edge, admin } = platform);
});

afterAll(() => platform?.close());

const CHAT = '/v1/chat/completions';
const USAGE = { stream: true, stream_options: { include_usage: true } };
const messages = [{ role: 'user', content: 'Hello' }];

let tenants = 0;
/** A tenant with these limits, and a key in it. */
async function tenant(limits: object): Promise<{ readonly id: string; readonly key: string }> {
  const id = `tenant-${tenants++}`;
  await done(server.http, 'POST', '/v1/iam/tenants', { token: admin, body: { id, name: id, ...limits } });
  const { key } = await makeKey(server.http, admin, { tenant: id, scopes: ['chat:*', 'embeddings:*', 'rag:*'] });
  return { id, key };
}

function ask(key: string, path: string, body: object, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
  return send(edge.url, {
    method: 'POST',
    path,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
}

const problemOf = (answer: Answer) => [answer.status, JSON.parse(answer.body).code];

interface Sums {
  readonly requests: number;
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
  readonly estimated_tokens: number;
}

/** Resolves when `requests` requests are booked. */
async function usageOf(id: string, requests: number): Promise<ReadonlyMap<string, Sums>> {
  let data: readonly (Sums & { readonly model: string })[] = [];
  await eventually(`${requests} requests of ${id} are booked`, async () => {
    const { body } = await done(server.http, 'GET', '/v1/iam/usage?group_by=model&limit=200', {
      token: admin,
      tenant: id,
    });
    data = JSON.parse(JSON.stringify(body['data']));
    return data.reduce((sum, row) => sum + row.requests, 0) === requests;
  });
  return new Map(data.map((row) => [row.model, row]));
}

async function limitsOf(id: string) {
  return JSON.parse(
    JSON.stringify((await done(server.http, 'GET', `/v1/iam/tenants/${id}/limits`, { token: admin })).body),
  );
}

async function ledger(): Promise<LedgerReport> {
  return JSON.parse((await send(`http://127.0.0.1:${upstream.port}`, { path: '/ledger' })).body);
}

describe('usage', () => {
  it('is booked as in the ledger of the upstream, and by estimate if the answer reports none', async () => {
    const { id, key } = await tenant({ quotas: { monthly_tokens: 1_000_000 } });
    const measured: [string, object][] = [
      [CHAT, { messages }],
      [CHAT, { messages, n: 3, max_tokens: 20 }],
      [CHAT, { messages, ...USAGE }],
      ['/v1/completions', { prompt: 'Hello' }],
      ['/v1/responses', { input: 'Hello' }],
      ['/v1/responses', { input: 'Hello', stream: true }],
      ['/v1/embeddings', { input: ['one', 'two'] }],
      ['/v1/completions', { prompt: ['Hello', 'again'], n: 2, ...USAGE }],
      ['/v1/messages', { messages, max_tokens: 20 }],
      ['/v1/messages', { messages, max_tokens: 20, stream: true }],
    ];
    const models = measured.map((_, i) => `${id}-${i}`);
    for (const [i, [path, body]] of [...measured, ...measured].entries()) {
      const model = models[i % models.length];
      expect((await ask(key, path, { model, ...body })).status).toBe(200);
    }
    const untold = await ask(key, CHAT, { model: 'untold', messages, stream: true });
    const cut = await ask(key, CHAT, { model: 'failed', messages }, { 'x-demo': 'status=500' });
    expect([untold.status, cut.status]).toEqual([200, 500]);
    await abort(key, { model: 'aborted', messages, ...USAGE });

    const booked = await usageOf(id, 2 * measured.length + 3);
    const { data } = await ledger();
    for (const model of models) {
      const entries = data.filter((entry) => entry.model === model);
      const sum = (read: (entry: (typeof data)[number]) => number) =>
        entries.reduce((total, entry) => total + read(entry), 0);
      expect(booked.get(model)).toMatchObject({
        requests: 2,
        prompt_tokens: sum((entry) => entry.prompt_tokens),
        completion_tokens: sum((entry) => entry.completion_tokens),
        total_tokens: sum((entry) => entry.total_tokens),
        estimated_tokens: 0,
      });
    }
    const prompt = tokensOf('untold', ...messages.flatMap((one) => Object.entries(one).flat()));
    expect(booked.get('untold')).toMatchObject({
      prompt_tokens: prompt,
      completion_tokens: tokensOf(textOf(untold.body)),
      estimated_tokens: prompt + tokensOf(textOf(untold.body)),
    });
    const aborted = booked.get('aborted') ?? expect.fail('the aborted stream is not booked');
    expect(aborted.estimated_tokens).toBe(aborted.total_tokens);
    expect(aborted.prompt_tokens).toBe(
      tokensOf('aborted', 'include_usage', ...messages.flatMap((one) => Object.entries(one).flat())),
    );
    expect(aborted.completion_tokens).toBeGreaterThan(0);

    const spent = [...booked.values()].reduce((sum, { total_tokens }) => sum + total_tokens, 0);
    expect((await limitsOf(id)).monthly_tokens).toMatchObject({ limit: 1_000_000, used: spent });
    expect(await metric(server.admin, 'postern_settlements_total{outcome="unknown"}')).toBe(0);
  });
});

/** The estimate of texts: a token for 4 bytes of all of them together, rounded up. */
function tokensOf(...texts: readonly string[]): number {
  return Math.ceil(Buffer.byteLength(texts.join('')) / 4);
}

/** The text of a stream of chat completions. */
function textOf(body: string): string {
  const events = body.split('\n\n').filter((event) => event.startsWith('data: {'));
  return events.map((event) => JSON.parse(event.slice(6)).choices[0]?.delta.content ?? '').join('');
}

/** Returns the booked usage of one request in a tenant of its own. */
async function bookedFor(
  body: object,
  path = CHAT,
  headers: Readonly<Record<string, string>> = {},
): Promise<[Answer, Sums]> {
  const { id, key } = await tenant({ quotas: { monthly_tokens: 10_000_000 } });
  const answer = await ask(key, path, { model: 'm', ...body }, headers);
  const [sums] = (await usageOf(id, 1)).values();
  return [answer, sums ?? expect.fail('nothing is booked')];
}

describe('an estimate', () => {
  const long = [{ role: 'user', content: 'x'.repeat(900_000) }];

  it('of a stream without usage is the estimate of its prompt, however long, plus that of its answer within the limit asked for', async () => {
    const prompt = tokensOf('m', 'role', 'user', 'content', 'x'.repeat(900_000));
    const body = { messages: long, stream: true, max_tokens: 1 };
    const [answer, booked] = await bookedFor(body);
    expect(answer.status).toBe(200);
    expect(textOf(answer.body).length).toBeGreaterThan(4);
    expect(booked).toMatchObject({ prompt_tokens: prompt, completion_tokens: 1, estimated_tokens: prompt + 1 });
  });

  it('of a prompt counts an inline image as a fixed number of tokens', async () => {
    const content = [
      { type: 'text', text: 'Look' },
      { type: 'image_url', image_url: { url: `data:image/png;base64,${'A'.repeat(500_000)}` } },
    ];
    const [, booked] = await bookedFor({ messages: [{ role: 'user', content }], stream: true });
    const names = ['role', 'content', 'type', 'text', 'type', 'image_url', 'url'];
    expect(booked.prompt_tokens).toBe(1000 + tokensOf('m', 'user', 'text', 'Look', 'image_url', ...names));
  });

  it('of a prompt is reserved: a request whose prompt is larger than what the quota has left is refused, one byte less is not', async () => {
    const { id, key } = await tenant({ quotas: { monthly_tokens: 1000 } });
    // With the model, the role and the names of the members, 3,997 bytes are 1,000 tokens.
    const content = 'x'.repeat(3996 - 'mroleusercontent'.length);
    const refused = await ask(key, CHAT, {
      model: 'm',
      messages: [{ role: 'user', content: `${content}x` }],
      max_tokens: 1,
    });
    expect(problemOf(refused)).toEqual([429, 'insufficient_quota']);
    const admitted = await ask(key, CHAT, { model: 'm', messages: [{ role: 'user', content }], max_tokens: 1 });
    expect(admitted.status).toBe(200);
    await usageOf(id, 1);
  });

  it('is booked for a request that was forwarded and whose client left before the answer: that of its prompt', async () => {
    const { id, key } = await tenant({ quotas: { monthly_tokens: 1_000_000 } });
    const outgoing = begin(key, { model: 'm', messages: long }, { 'x-demo': 'hang-after=0' });
    await eventually(
      'the request reached the upstream',
      async () => (await statOf(edge, 'cluster.upstream.upstream_rq_active')) > 0,
    );
    outgoing.destroy();
    const prompt = tokensOf('m', 'role', 'user', 'content', 'x'.repeat(900_000));
    const [booked] = (await usageOf(id, 1)).values();
    expect(booked).toMatchObject({
      prompt_tokens: prompt,
      completion_tokens: 0,
      estimated_tokens: prompt,
    });
  });

  it('is booked for a request that the upstream left without an answer, and not for one that it answered with an error', async () => {
    const [left, booked] = await bookedFor({ messages }, CHAT, { 'x-demo': 'close-after=0' });
    expect([left.status, booked.total_tokens]).toEqual([503, tokensOf('m', 'role', 'user', 'content', 'Hello')]);
    for (const status of [400, 429, 500]) {
      const [, failed] = await bookedFor({ messages }, CHAT, { 'x-demo': `status=${status}` });
      expect(failed).toMatchObject({ total_tokens: 0, estimated_tokens: 0 });
    }
  });
});

describe('a request for completions', () => {
  it('reserves for each of its prompts and answers, and for the tokens of the prompts', async () => {
    // 3 prompts with 2 answers of 10 tokens each, and 4 bytes of text.
    const body = { model: 'm', prompt: ['a', 'b', 'c'], n: 2, max_tokens: 10 };
    const [tight, enough] = [
      await tenant({ quotas: { monthly_tokens: 60 } }),
      await tenant({ quotas: { monthly_tokens: 61 } }),
    ];
    expect(problemOf(await ask(tight.key, '/v1/completions', body))).toEqual([429, 'insufficient_quota']);
    expect((await ask(enough.key, '/v1/completions', body)).status).toBe(200);
  });

  it('has at most 2,048 prompts', async () => {
    const { key } = await tenant({});
    const body = (prompts: number) => ({
      model: 'm',
      prompt: Array.from({ length: prompts }, () => 'a'),
      max_tokens: 1,
    });
    expect(problemOf(await ask(key, '/v1/completions', body(2049)))).toEqual([400, 'malformed_body']);
    expect((await ask(key, '/v1/completions', body(2048))).status).toBe(200);
  });
});

/** Begins a request and never reads its answer. */
function begin(key: string, body: object, more: Readonly<Record<string, string>>): ClientRequest {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...more };
  const outgoing = request({ host: '127.0.0.1', port: edge.port, method: 'POST', path: CHAT, agent: false, headers });
  outgoing.on('error', () => undefined);
  return outgoing.end(JSON.stringify(body));
}

/** Leaves a stream after its first bytes. */
async function abort(key: string, body: object): Promise<void> {
  const outgoing = begin(key, body, { 'x-demo': 'hang-after=3' });
  const [incoming] = await once(outgoing, 'response');
  incoming.on('error', () => undefined);
  await once(incoming, 'data');
  outgoing.destroy();
}

describe('a rate limit', () => {
  it('allows its number of requests, and states on each how many remain', async () => {
    const { key } = await tenant({ settings: { rate_limit_rpm: 3 } });
    const answers: Answer[] = [];
    for (let i = 0; i < 4; i++) answers.push(await ask(key, CHAT, { model: 'm', messages }));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 429]);
    for (const { headers } of answers) {
      expect(headers['x-ratelimit-limit-requests']).toBe('3');
      expect(headers['ratelimit-policy']).toBe(`"requests";q=3;w=${365 * 86_400}`);
    }
    expect(answers.map(({ headers }) => headers['x-ratelimit-remaining-requests'])).toEqual(['2', '1', '0', '0']);
    const [refused] = answers.slice(-1);
    expect(refused === undefined ? [] : problemOf(refused)).toEqual([429, 'rate_limit_exceeded']);
    expect(Number(refused?.headers['retry-after'])).toBeGreaterThan(0);
  });

  it('of a key holds for it alone', async () => {
    const { id, key } = await tenant({ settings: { rate_limit_rpm: 100 } });
    const body = { description: 'slow', scopes: ['chat:*'], expires_in_days: 1, rate_limit_rpm: 1 };
    const made = await done(server.http, 'POST', '/v1/iam/api-keys', { token: admin, tenant: id, body });
    const slow = String(made.body['key']);
    const one = (credential: string) => ask(credential, CHAT, { model: 'm', messages });
    expect([(await one(slow)).status, (await one(slow)).status, (await one(key)).status]).toEqual([200, 429, 200]);
  });
});

describe('a quota of tokens', () => {
  it('that is used up rejects requests that it cannot cover, and admits them at once after it is raised', async () => {
    const { id, key } = await tenant({ quotas: { monthly_tokens: 1500 } });
    const first = await ask(key, CHAT, { model: 'm', messages, max_tokens: 900 });
    expect(first.status).toBe(200);
    await usageOf(id, 1);
    const refused = await ask(key, CHAT, { model: 'm', messages, max_tokens: 1500 });
    expect(problemOf(refused)).toEqual([429, 'insufficient_quota']);
    expect(refused.headers['x-should-retry']).toBe('false');
    expect(Date.parse(JSON.parse(refused.body).resets_at)).toBeGreaterThan(Date.now());
    // The unspent tokens of the first one are available again.
    expect((await ask(key, CHAT, { model: 'm', messages, max_tokens: 1400 })).status).toBe(200);
    await done(server.http, 'PUT', `/v1/iam/tenants/${id}`, {
      token: admin,
      body: { quotas: { monthly_tokens: 10_000 } },
    });
    expect((await ask(key, CHAT, { model: 'm', messages, max_tokens: 1500 })).status).toBe(200);
  });
});

describe('a limit of collections', () => {
  it('counts what the upstream made, and gives back what it removed', async () => {
    const { id, key } = await tenant({ quotas: { max_collections: 2 } });
    const create = (headers = {}) => ask(key, '/v1/rag/collections', { name: 'x' }, headers);
    const count = async () => (await limitsOf(id)).max_collections;
    expect((await create({ 'x-demo': 'status=500' })).status).toBe(500);
    await eventually('what came to nothing is free again', async () => (await count()).reserved === 0);
    expect([(await create()).status, (await create()).status]).toEqual([200, 200]);
    expect(problemOf(await create())).toEqual([429, 'insufficient_quota']);
    await eventually('both are counted', async () => (await count()).used === 2);
    const headers = { authorization: `Bearer ${key}` };
    expect((await send(edge.url, { method: 'DELETE', path: '/v1/rag/collections/x', headers })).status).toBe(200);
    await eventually('one is given back', async () => (await count()).used === 1);
    expect((await create()).status).toBe(200);
  });
});

describe('after a fail-over to a standby that lagged', () => {
  it('the server reads its holds again, and returns the tokens whose return the standby had not received', async () => {
    const { id, key } = await tenant({ quotas: { monthly_tokens: 1_000_000 } });
    expect((await ask(key, CHAT, { messages })).status).toBe(200);
    await usageOf(id, 1);
    // As if a hold of 300,000 tokens had been given back within the lag.
    const [row] = await database.db.query({
      text: `with hold as (update token_holds set held = held + 300000 where tenant_id = $1 returning 1)
        update token_budgets set held = held + 300000 where tenant_id = $1 and exists (select from hold) returning held::float8 as held`,
      values: [id],
    });
    expect(row?.['held']).toBeGreaterThanOrEqual(300_000);
    await database.db.query({ text: 'update feed_state set epoch = gen_random_uuid()' });
    await eventually('it is given back', async () => {
      const [now] = await database.db.query({
        text: 'select held::float8 as held from token_budgets where tenant_id = $1',
        values: [id],
      });
      return Number(now?.['held']) < 100_000;
    });
  });
});

describe('a stop', () => {
  it('the server books what ended while it stopped', async () => {
    const { id, key } = await tenant({ quotas: { monthly_tokens: 100_000 } });
    for (let i = 0; i < 5; i++) expect((await ask(key, CHAT, { model: 'last', messages })).status).toBe(200);
    const { code } = await server.stop();
    expect(code).toBe(0);
    const { rows } = await database.db.knex.raw<{ rows: { requests: string }[] }>(
      'select sum(requests) as requests from usage_daily where tenant_id = ?',
      [id],
    );
    expect(rows.map(({ requests }) => Number(requests))).toEqual([5]);
    expect((await call(server.http, 'GET', '/v1/auth/me').catch(() => undefined))?.status).toBeUndefined();
  });
});
