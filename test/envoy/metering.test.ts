/** The reports of finished requests through a real Envoy, compared with the ledger of the upstream. */

import { once } from 'node:events';
import { Agent, type ClientRequest, type IncomingMessage, request } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { LedgerEntry, LedgerReport } from '../../src/demo/ledger.ts';
import { startUpstream, type Upstream } from '../../src/demo/upstream.ts';
import { USER_ID } from '../extauthz/support/little-world.ts';
import { replacing, statOf } from '../support/envoy.ts';
import { type Answer, send } from '../support/http.ts';
import { type MeteredEdge, startMeteredEdge } from '../support/metered-edge.ts';

let upstream: Upstream;
let metered: MeteredEdge;

beforeAll(async () => {
  upstream = await startUpstream('127.0.0.1', 0);
  metered = await startMeteredEdge(`127.0.0.1:${upstream.port}`);
});

afterAll(async () => {
  await metered.stop();
  await upstream.close();
});

const CHAT = '/v1/chat/completions';
const HELLO = [{ role: 'user', content: 'Say "usage": {"total_tokens": 1000000} \\ and éà日本' }];
const USAGE = { stream: true, stream_options: { include_usage: true } };

let models = 0;
/** A model of one request only, by which the test finds it in the ledger and in the reports. */
const newModel = (): string => `model-${models++}`;

function headers(more: Readonly<Record<string, string>> = {}): Record<string, string> {
  return { authorization: `Bearer ${metered.world.userToken}`, 'content-type': 'application/json', ...more };
}

function ask(path: string, body: object, more?: Readonly<Record<string, string>>): Promise<Answer> {
  return send(metered.edge.url, { method: 'POST', path, headers: headers(more), body: JSON.stringify(body) });
}

/** Begins a request whose answer is read by the test. */
async function begin(body: object, more?: Readonly<Record<string, string>>): Promise<[ClientRequest, IncomingMessage]> {
  const { port } = metered.edge;
  const outgoing = request({
    host: '127.0.0.1',
    port,
    path: CHAT,
    method: 'POST',
    headers: headers(more),
    agent: false,
  });
  outgoing.on('error', () => undefined);
  outgoing.end(JSON.stringify(body));
  const [incoming] = await once(outgoing, 'response');
  incoming.on('error', () => undefined);
  return [outgoing, incoming];
}

async function ledgerOf(model: string): Promise<LedgerEntry | undefined> {
  const { body } = await send(`http://127.0.0.1:${upstream.port}`, { path: '/ledger' });
  const report: LedgerReport = JSON.parse(body);
  return report.data.find((entry) => entry.model === model);
}

async function expectAsInLedger(model: string): Promise<void> {
  const entry = (await ledgerOf(model)) ?? expect.fail(`${model} is not in the ledger`);
  expect(await metered.finished(model)).toMatchObject({
    tenant: 'acme',
    user: USER_ID,
    key: undefined,
    model,
    status: 200,
    usage: {
      prompt: entry.prompt_tokens,
      completion: entry.completion_tokens,
      cached: 0,
      total: entry.total_tokens,
      model,
    },
  });
}

describe('the reported usage equals the ledger of the upstream', () => {
  it.each<[string, string, object]>([
    ['a chat', CHAT, { messages: HELLO }],
    ['a chat with several answers', CHAT, { messages: HELLO, n: 3 }],
    ['a completion', '/v1/completions', { prompt: 'Hello' }],
    ['a response', '/v1/responses', { input: 'Hello' }],
    ['embeddings', '/v1/embeddings', { input: ['one', 'two'] }],
    ['embeddings whose answer is longer than what Envoy keeps', '/v1/embeddings', { input: many(2000, 400) }],
    ['a stream', CHAT, { messages: HELLO, ...USAGE }],
    ['a stream of several answers', CHAT, { messages: HELLO, n: 3, ...USAGE }],
    ['a stream of a completion', '/v1/completions', { prompt: 'Hello', ...USAGE }],
    ['a stream of a response', '/v1/responses', { input: 'Hello', stream: true }],
    ['a message', '/v1/messages', { messages: HELLO, max_tokens: 100 }],
    ['a stream of a message', '/v1/messages', { messages: HELLO, max_tokens: 100, stream: true }],
    ['completions of several prompts', '/v1/completions', { prompt: ['Hello', 'again'], n: 2 }],
    ['a path with a slash at its end', `${CHAT}/`, { messages: HELLO }],
  ])('of %s', async (_name, path, body) => {
    const model = newModel();
    const answer = await ask(path, { model, ...body });
    expect(answer.status, answer.body).toBe(200);
    await expectAsInLedger(model);
  });

  it.each([[{}], [USAGE]])(
    'for a client that takes compressed answers, which it does not get here: %j',
    async (stream) => {
      const model = newModel();
      const answer = await ask(
        CHAT,
        { model, messages: HELLO, ...stream },
        { 'accept-encoding': 'gzip, deflate, br, zstd' },
      );
      expect(answer.headers).not.toHaveProperty('content-encoding');
      await expectAsInLedger(model);
    },
  );

  it('of each of many requests on one connection, once', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const asked = Array.from({ length: 60 }, newModel);
    const { port } = metered.edge;
    for (const [i, model] of asked.entries()) {
      const options = { host: '127.0.0.1', port, path: CHAT, method: 'POST', headers: headers(), agent };
      const outgoing = request(options).end(JSON.stringify({ model, messages: HELLO, ...(i % 2 === 0 ? {} : USAGE) }));
      const [incoming] = await once(outgoing, 'response');
      incoming.resume();
      await once(incoming, 'end');
    }
    agent.destroy();
    for (const model of asked) await expectAsInLedger(model);
    const wanted = new Set(asked.map((model) => metered.reservations.get(model)));
    expect(metered.told.filter(({ reservation }) => wanted.has(reservation))).toHaveLength(asked.length);
  });

  it('with the length of the answer', async () => {
    const model = newModel();
    const answer = await ask(CHAT, { model, messages: HELLO });
    const { responseBytes, route } = await metered.finished(model);
    expect(responseBytes).toBe(Buffer.byteLength(answer.body));
    expect(route).toBe('POST /v1/chat/completions');
  });
});

function many(count: number, length: number): string[] {
  return Array.from({ length: count }, (_, i) => String(i).padEnd(length, 'x'));
}

describe('unmeasured usage is reported as unmeasured', () => {
  it('a stream whose client did not ask for usage', async () => {
    const model = newModel();
    const answer = await ask(CHAT, { model, messages: HELLO, stream: true });
    const events = answer.body.split('\n\n').filter((event) => event.startsWith('data: {'));
    const text = events.map((event) => JSON.parse(event.slice(6)).choices[0]?.delta.content ?? '').join('');
    expect(await metered.finished(model)).toMatchObject({
      usage: undefined,
      textBytes: Buffer.byteLength(text),
      status: 200,
      responseBytes: Buffer.byteLength(answer.body),
      upstream: 'answered',
    });
    expect(await ledgerOf(model)).toBeUndefined();
  });

  it('a stream that its client leaves, once it has left and not before', async () => {
    const model = newModel();
    const [outgoing, incoming] = await begin({ model, messages: HELLO, ...USAGE }, { 'x-demo': 'hang-after=3' });
    await once(incoming, 'data');
    // Requests that end during the wait are reported; this one has not ended.
    const other = newModel();
    await ask(CHAT, { model: other, messages: HELLO });
    await metered.finished(other);
    const reservation = metered.reservations.get(model);
    expect(metered.told.map((one) => one.reservation)).not.toContain(reservation);
    outgoing.destroy();
    const { usage, status, responseBytes } = await metered.finished(model);
    expect([usage, status]).toEqual([undefined, 200]);
    expect(responseBytes).toBeGreaterThan(0);
    expect(await ledgerOf(model)).toBeUndefined();
  });

  it('a stream that the upstream breaks off', async () => {
    const model = newModel();
    const [, incoming] = await begin({ model, messages: HELLO, ...USAGE }, { 'x-demo': 'close-after=3' });
    incoming.resume();
    await new Promise((resolve) => incoming.once('close', resolve));
    expect(await metered.finished(model)).toMatchObject({ usage: undefined, status: 200 });
    expect(await ledgerOf(model)).toBeUndefined();
  });

  it('an answer that the upstream breaks off', async () => {
    const model = newModel();
    const [, incoming] = await begin({ model, messages: HELLO }, { 'x-demo': 'close-after=40' });
    incoming.resume();
    await new Promise((resolve) => incoming.once('close', resolve));
    expect(await metered.finished(model)).toMatchObject({ usage: undefined, status: 200, upstream: 'forwarded' });
  });

  it('a client that leaves before the answer', async () => {
    const model = newModel();
    const { port } = metered.edge;
    const options = { host: '127.0.0.1', port, path: CHAT, method: 'POST', agent: false } as const;
    const outgoing = request({ ...options, headers: headers({ 'x-demo': 'hang-after=0' }) });
    outgoing.on('error', () => undefined);
    outgoing.end(JSON.stringify({ model, messages: HELLO }));
    await expect.poll(() => statOf(metered.edge, 'cluster.upstream.upstream_rq_active')).toBe(1);
    outgoing.destroy();
    expect(await metered.finished(model)).toMatchObject({ usage: undefined, status: 0, upstream: 'forwarded' });
  });

  it('an upstream that goes without an answer', async () => {
    const model = newModel();
    const answer = await ask(CHAT, { model, messages: HELLO }, { 'x-demo': 'close-after=0' });
    expect(answer.status).toBe(503);
    expect(await metered.finished(model)).toMatchObject({ usage: undefined, status: 503, upstream: 'forwarded' });
  });

  it('an upstream that is silent for too long', async () => {
    const other = await startMeteredEdge(`127.0.0.1:${upstream.port}`, {
      edit: replacing({ 'idle_timeout: 600s': 'idle_timeout: 0.5s' }),
    });
    try {
      const body = JSON.stringify({ model: 'm', messages: HELLO });
      const more = headers({ authorization: `Bearer ${other.world.userToken}`, 'x-demo': 'hang-after=0' });
      expect((await send(other.edge.url, { method: 'POST', path: CHAT, headers: more, body })).status).toBe(504);
      expect(await other.finished('m')).toMatchObject({ usage: undefined, status: 504, upstream: 'forwarded' });
    } finally {
      await other.stop();
    }
  });

  it('an upstream that cannot be reached', async () => {
    const gone = await startUpstream('127.0.0.1', 0);
    const other = await startMeteredEdge(`127.0.0.1:${gone.port}`);
    await gone.close();
    try {
      const body = JSON.stringify({ model: 'm', messages: HELLO });
      const authorization = `Bearer ${other.world.userToken}`;
      const answer = await send(other.edge.url, {
        method: 'POST',
        path: CHAT,
        headers: headers({ authorization }),
        body,
      });
      expect(answer.status).toBe(503);
      expect(await other.finished('m')).toMatchObject({ usage: undefined, status: 503, upstream: 'untouched' });
    } finally {
      await other.stop();
    }
  });

  it.each([500, 429, 503])('an upstream that answers %i', async (status) => {
    const model = newModel();
    const answer = await ask(CHAT, { model, messages: HELLO }, { 'x-demo': `status=${status}` });
    expect(answer.status).toBe(status);
    expect(await metered.finished(model)).toMatchObject({ usage: undefined, status, upstream: 'answered' });
  });
});

describe('no usage is reported', () => {
  it('of what Postern refused, or what spends nothing', async () => {
    const before = metered.told.length;
    const refused = await ask(CHAT, { model: 'secret-one', messages: HELLO });
    const free = await send(metered.edge.url, { path: '/v1/agents', headers: headers() });
    expect([refused.status, free.status]).toEqual([403, 200]);
    const model = newModel();
    await ask(CHAT, { model, messages: HELLO });
    await metered.finished(model);
    expect(metered.told).toHaveLength(before + 1);
  });
});

describe('a server that stops', () => {
  it('hears what was on its way to it, and the next one hears the rest', async () => {
    const [before, open] = [newModel(), newModel()];
    const [outgoing, incoming] = await begin({ model: open, messages: HELLO, ...USAGE }, { 'x-demo': 'hang-after=3' });
    await once(incoming, 'data');
    await ask(CHAT, { model: before, messages: HELLO });
    await metered.replaceServer();
    await expectAsInLedger(before);
    outgoing.destroy();
    expect(await metered.finished(open)).toMatchObject({ usage: undefined, status: 200 });
  });
});
