/**
 * Budgets and rates of tokens through a real Envoy, the whole server as a process, a real PostgreSQL, and an upstream
 * with a ledger.
 */

import { once } from 'node:events';
import { type ClientRequest, request } from 'node:http';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { done, type MadeKey, makeKey, makeUser } from '../server/support/client.ts';
import { eventually } from '../server/support/eventually.ts';
import { openPlatform, type Platform } from '../server/support/platform.ts';
import { metric } from '../server/support/postern.ts';
import { type Answer, send } from '../support/http.ts';
import { type LedgerUpstream, type Spent, startLedgerUpstream } from './ledger-upstream.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

/** In 10^-9 of the currency for one token, beside the texts of the API. */
const PRICES = {
  'cloud-*': { input: 1000n, output: 4000n, cached: 100n, written: 1250n },
  'cloud-small': { input: 7n, output: 9n, cached: 7n, written: 7n },
} as const;

/** A window of the limits per minute, in seconds. */
const WINDOW_S = 2;

let platform: Platform;
let upstream: LedgerUpstream;

beforeAll(async () => {
  upstream = await startLedgerUpstream();
  const settings = { POSTERN_LIMITS_WINDOW: `${WINDOW_S}s`, POSTERN_LIMITS_BUDGET_HEADER: 'true' };
  platform = await openPlatform(settings, undefined, async () => upstream);
  const { server, admin } = platform;
  await done(server.http, 'PUT', '/v1/iam/prices', {
    token: admin,
    body: {
      prices: [
        { models: 'cloud-*', input: '1.00', output: '4.00', cached_input: '0.10', cache_write: '1.25', per: 1_000_000 },
        { models: 'cloud-small', input: '0.000007', output: '0.000009', per: 1000 },
      ],
    },
  });
});

afterAll(() => platform?.close());

const CHAT = '/v1/chat/completions';
const STREAM = { stream: true, stream_options: { include_usage: true } };
const messages = [{ role: 'user', content: 'Hello' }];

const api = async (method: string, path: string, tenant: string | undefined, body?: object) => {
  const reply = await done(platform.server.http, method, path, { token: platform.admin, tenant, body });
  return JSON.parse(JSON.stringify(reply.body));
};

let tenants = 0;
async function newTenant(settings: object = {}): Promise<string> {
  const id = `tenant-${tenants++}`;
  await api('POST', '/v1/iam/tenants', undefined, { id, name: id, settings });
  return id;
}

const newKey = (tenant: string, owner?: string): Promise<MadeKey> =>
  makeKey(platform.server.http, platform.admin, { tenant, owner, scopes: ['chat:*', 'embeddings:*'] });

interface Budget {
  readonly id: string;
}
const newBudget = (tenant: string, budget: object): Promise<Budget> =>
  api('POST', '/v1/iam/budgets', tenant, { period: 'month', applies_to: { tenant: true }, ...budget });

const stateOf = async (tenant: string, { id }: Budget) => (await api('GET', `/v1/iam/budgets/${id}`, tenant)).state;

interface Ask {
  readonly path?: string;
  readonly spent?: Spent;
  readonly headers?: Readonly<Record<string, string>>;
}

function headersOf({ key }: MadeKey, { spent, headers }: Ask): Record<string, string> {
  const told = spent === undefined ? {} : { 'x-usage': JSON.stringify(spent) };
  return { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...told, ...headers };
}

function ask(key: MadeKey, body: object, how: Ask = {}): Promise<Answer> {
  const { path = CHAT } = how;
  const text = JSON.stringify({ messages, max_tokens: 10, ...body });
  return send(platform.edge.url, { method: 'POST', path, headers: headersOf(key, how), body: text });
}

/** Leaves a stream after its first bytes. */
async function abort(key: MadeKey, body: object): Promise<void> {
  const headers = headersOf(key, { headers: { 'x-hang': 'true' } });
  const outgoing: ClientRequest = request({
    host: '127.0.0.1',
    port: platform.edge.port,
    method: 'POST',
    path: CHAT,
    agent: false,
    headers,
  });
  outgoing.on('error', () => undefined);
  outgoing.end(JSON.stringify({ messages, max_tokens: 10, ...STREAM, ...body }));
  const [incoming] = await once(outgoing, 'response');
  incoming.on('error', () => undefined);
  await once(incoming, 'data');
  outgoing.destroy();
}

interface Sums {
  readonly requests: number;
  readonly total_tokens: number;
  readonly cached_tokens: number;
  readonly estimated_tokens: number;
  readonly cost: string;
}

/** Resolves when `requests` requests of the tenant are booked. */
async function usageOf(tenant: string, groupBy: string, requests: number): Promise<ReadonlyMap<string, Sums>> {
  let rows: readonly (Sums & Readonly<Record<string, string | null>>)[] = [];
  await eventually(`${requests} requests of ${tenant} are booked`, async () => {
    rows = (await api('GET', `/v1/iam/usage?group_by=${groupBy}&limit=200`, tenant)).data;
    return rows.reduce((sum, row) => sum + row.requests, 0) === requests;
  });
  return new Map(rows.map((row) => [row[groupBy] ?? '', row]));
}

const problemOf = ({ status, body }: Answer) => ({ ...JSON.parse(body), status });

/** Without rounding of a kind that JavaScript chooses: an amount of money in 10^-9 of the currency. */
const nano = (text: string): bigint => {
  const [whole = '', places = ''] = text.split('.');
  return BigInt(whole + places.padEnd(9, '0'));
};

function costOf(model: string, { prompt, completion, cached = 0, written = 0 }: Spent): bigint {
  const price = PRICES[model === 'cloud-small' ? model : 'cloud-*'];
  if (!model.startsWith('cloud-')) return 0n;
  const plain = BigInt(prompt - cached - written);
  return (
    plain * price.input +
    BigInt(cached) * price.cached +
    BigInt(written) * price.written +
    BigInt(completion) * price.output
  );
}

describe('a budget', () => {
  it('that has room for two of five long prompts at once lets exactly two of them pass, although one price has no tiers', async () => {
    const tenant = await newTenant();
    const key = await newKey(tenant);
    const budget = await newBudget(tenant, { name: 'cap', unit: 'money', limit: '0.45' });
    const content = 'x'.repeat(800_000);
    const spent = { prompt: 200_000, completion: 10 };
    const five = Array.from({ length: 5 }, () =>
      ask(
        key,
        { model: 'cloud-large', messages: [{ role: 'user', content }] },
        { spent, headers: { 'x-hold': 'true' } },
      ),
    );
    let refused = 0;
    for (const one of five) void one.then(({ status }) => (refused += status === 429 ? 1 : 0));
    await eventually('each is at the upstream or refused', async () => upstream.held + refused === 5);
    expect(upstream.held).toBe(2);
    upstream.release();
    const answers = await Promise.all(five);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 429, 429, 429]);
    const { code, budget: named } = problemOf(answers.find(({ status }) => status === 429) ?? expect.fail());
    expect([code, named.name]).toEqual(['insufficient_quota', 'cap']);
    await usageOf(tenant, 'key', 2);
    expect(nano((await stateOf(tenant, budget)).spent)).toBe(2n * costOf('cloud-large', spent));
  });

  it('of a key stays used up after the rotation of the key', async () => {
    const tenant = await newTenant();
    const key = await newKey(tenant);
    const budget = await newBudget(tenant, {
      name: 'of-key',
      unit: 'tokens',
      limit: 1000,
      applies_to: { keys: [key.id] },
    });
    const first = await ask(key, { model: 'any', max_tokens: 980 }, { spent: { prompt: 6, completion: 980 } });
    expect(first.status).toBe(200);
    await usageOf(tenant, 'key', 1);
    const { key: text } = await api('POST', `/v1/iam/api-keys/${key.id}/rotate`, tenant, {});
    const rotated = { ...key, key: text };
    expect(rotated.key).not.toBe(key.key);
    const refused = await ask(rotated, { model: 'any' });
    expect(problemOf(refused)).toMatchObject({ status: 429, code: 'insufficient_quota', budget: { name: 'of-key' } });
    expect(refused.headers['x-should-retry']).toBe('false');
    expect(await stateOf(tenant, budget)).toMatchObject({ spent: 986 });
    expect((await ask(await newKey(tenant), { model: 'any' })).status).toBe(200);
  });

  it('of the key and one of its tenant each refuse in their own name, with their own amounts for callers that may read usage', async () => {
    const tenant = await newTenant();
    const [bounded, free] = [await newKey(tenant), await newKey(tenant)];
    const reader = await makeKey(platform.server.http, platform.admin, { tenant, scopes: ['chat:*', 'usage:read'] });
    await newBudget(tenant, { name: 'of-key', unit: 'requests', limit: 1, applies_to: { keys: [bounded.id] } });
    await newBudget(tenant, { name: 'of-tenant', unit: 'tokens', limit: 5000, period: 'total' });
    expect((await ask(bounded, { model: 'any' }, { spent: { prompt: 5, completion: 5 } })).status).toBe(200);
    await usageOf(tenant, 'key', 1);
    for (const [key, body, name] of [
      [bounded, {}, 'of-key'],
      [free, { max_tokens: 5000 }, 'of-tenant'],
      [reader, { max_tokens: 5000 }, 'of-tenant'],
    ] as const) {
      const answer = await ask(key, { model: 'any', ...body });
      const { status, detail, budget, error } = problemOf(answer);
      expect([status, budget.name, error.type]).toEqual([429, name, 'insufficient_quota']);
      expect(detail).toContain(name);
      expect(detail).not.toMatch(/\b(unlimited|infinity|undefined|null|nan)\b/i);
      expect(answer.headers['x-postern-budget-remaining']).toMatch(new RegExp(`^"${name}"`));
      expect('limit' in budget).toBe(key === reader);
      expect(budget.resets_at === null).toBe(name === 'of-tenant');
    }
    const { budget } = problemOf(await ask(reader, { model: 'any', max_tokens: 5000 }));
    expect(budget).toMatchObject({ unit: 'tokens', limit: 5000, spent: 10, remaining: 4990 });
    const allowed = await ask(reader, { model: 'any' });
    expect(allowed.headers['x-postern-budget-remaining']).toMatch(/^"of-tenant"; remaining=\d+; unit=tokens$/);
  });

  it('that is reported only blocks nothing and counts everything', async () => {
    const tenant = await newTenant();
    const key = await newKey(tenant);
    const budget = await newBudget(tenant, { name: 'watched', unit: 'requests', limit: 1, action: 'report' });
    for (let i = 0; i < 3; i++) expect((await ask(key, { model: 'any' })).status).toBe(200);
    await eventually('all are counted', async () => (await stateOf(tenant, budget)).spent === 3);
  });
});

describe('a limit by model', () => {
  it('of tokens per minute that one long answer has exceeded admits again in the next window', async () => {
    const tenant = await newTenant({ rate_limits: [{ models: ['cloud-*'], tokens_per_minute: 1000 }] });
    const key = await newKey(tenant);
    const next = () => ask(key, { model: 'cloud-small' });
    expect((await ask(key, { model: 'cloud-small' }, { spent: { prompt: 10, completion: 900_000 } })).status).toBe(200);
    await usageOf(tenant, 'key', 1);
    const answers: Answer[] = [];
    await eventually('a window has room again', async () => answers[answers.push(await next()) - 1]?.status === 200);
    for (const refused of answers.slice(0, -1)) {
      expect(problemOf(refused)).toMatchObject({
        status: 429,
        code: 'rate_limit_exceeded',
        limit: { level: 'tenant', models: ['cloud-*'], dimension: 'tokens_per_minute' },
      });
      expect(Number(refused.headers['retry-after'])).toBeLessThanOrEqual(WINDOW_S);
    }
    expect((await ask(key, { model: 'other' })).status).toBe(200);
  });

  it('of parallel requests gives the place of a request to the next one when its answer ends', async () => {
    const tenant = await newTenant({ rate_limits: [{ models: ['*'], parallel: 2 }] });
    const key = await newKey(tenant);
    const hold = { headers: { 'x-hold': 'true' } };
    const two = [ask(key, { model: 'any' }, hold), ask(key, { model: 'any' }, hold)];
    await eventually('both are at the upstream', async () => upstream.held === 2);
    const refused = await ask(key, { model: 'any' });
    expect(problemOf(refused)).toMatchObject({ status: 429, limit: { level: 'tenant', dimension: 'parallel' } });
    expect(refused.headers['retry-after']).toBe('1');
    upstream.release();
    expect((await Promise.all(two)).map(({ status }) => status)).toEqual([200, 200]);
    await eventually('a place is free', async () => (await ask(key, { model: 'any' })).status === 200);
  });
});

describe("the upstream's ledger", () => {
  it('equals usage and budgets in tokens and in money: whole, streamed, cached, of both APIs, with and without a price', async () => {
    const tenant = await newTenant();
    const owner = await makeUser(platform.server.http, platform.admin, { tenant });
    const keys = [await newKey(tenant), await newKey(tenant, owner.id)];
    const limit = { money: '1000.00', tokens: 1_000_000_000, requests: 1000 };
    const ofAll = await Promise.all(
      (['money', 'tokens', 'requests'] as const).map((unit) =>
        newBudget(tenant, { name: `all-${unit}`, unit, limit: limit[unit] }),
      ),
    );
    const ofOwner = await newBudget(tenant, {
      name: 'of-owner',
      unit: 'money',
      limit: '1000.00',
      per: 'user',
      applies_to: { users: [owner.id] },
    });
    const ofModel = await newBudget(tenant, {
      name: 'of-model',
      unit: 'tokens',
      limit: 1_000_000,
      models: ['cloud-small'],
    });
    const usage = { prompt: 1003, completion: 211, cached: 300 };
    const asked: readonly (readonly [string, Ask, object])[] = [
      ['cloud-large', { spent: usage }, {}],
      ['cloud-large', { spent: { ...usage, prompt: 2007 } }, STREAM],
      ['cloud-small', { spent: { ...usage, completion: 0 } }, STREAM],
      ['cloud-large', { spent: { ...usage, written: 77 }, path: '/v1/messages' }, {}],
      ['cloud-large', { spent: { ...usage, written: 550 }, path: '/v1/messages' }, { stream: true }],
      ['ours', { spent: usage }, {}],
    ];
    for (const key of keys)
      for (const [model, how, body] of asked) expect((await ask(key, { model, ...body }, how)).status).toBe(200);

    const requests = asked.length * keys.length;
    const [byKey, byUser, byModel] = [
      await usageOf(tenant, 'key', requests),
      await usageOf(tenant, 'user', requests),
      await usageOf(tenant, 'model', requests),
    ];
    const lines = upstream.ledger.filter((line) => line.tenant === tenant);
    const sumOf = (some: typeof lines) => ({
      tokens: some.reduce((sum, { prompt, completion }) => sum + prompt + completion, 0),
      money: some.reduce((sum, line) => sum + costOf(line.model, line), 0n),
    });
    const compare = (booked: Sums | undefined, some: typeof lines): void => {
      const { total_tokens, cost, estimated_tokens } = booked ?? expect.fail('nothing is booked');
      expect({ tokens: total_tokens, money: nano(cost) }).toEqual(sumOf(some));
      expect(estimated_tokens).toBe(0);
    };
    for (const { id } of keys)
      compare(
        byKey.get(id),
        lines.filter(({ subject }) => subject === id),
      );
    compare(
      byUser.get(owner.id),
      lines.filter(({ user }) => user === owner.id),
    );
    for (const model of ['cloud-large', 'cloud-small', 'ours'])
      compare(
        byModel.get(model),
        lines.filter((line) => line.model === model),
      );
    const [money, tokens, counted] = await Promise.all(ofAll.map((budget) => stateOf(tenant, budget)));
    expect({ tokens: tokens.spent, money: nano(money.spent) }).toEqual(sumOf(lines));
    expect(counted.spent).toBe(lines.length);
    const [mine] = (await stateOf(tenant, ofOwner)).callers;
    expect(nano(mine.spent)).toBe(sumOf(lines.filter(({ user }) => user === owner.id)).money);
    expect((await stateOf(tenant, ofModel)).spent).toBe(
      sumOf(lines.filter(({ model }) => model === 'cloud-small')).tokens,
    );
  });

  it('lacks answers that were left or that reported nothing, which are booked by estimate in usage and budgets alike', async () => {
    const tenant = await newTenant();
    const key = await newKey(tenant);
    const [money, tokens] = [
      await newBudget(tenant, { name: 'money', unit: 'money', limit: '10.00' }),
      await newBudget(tenant, { name: 'tokens', unit: 'tokens', limit: 100_000 }),
    ];
    expect((await ask(key, { model: 'cloud-large' })).status).toBe(200);
    expect((await ask(key, { model: 'cloud-large', stream: true })).status).toBe(200);
    await abort(key, { model: 'cloud-large' });
    const booked = (await usageOf(tenant, 'model', 3)).get('cloud-large') ?? expect.fail('nothing is booked');
    expect(upstream.ledger.filter((line) => line.tenant === tenant)).toEqual([]);
    expect(booked.estimated_tokens).toBe(booked.total_tokens);
    expect(booked.total_tokens).toBeGreaterThan(0);
    expect((await stateOf(tenant, tokens)).spent).toBe(booked.total_tokens);
    const { spent } = await stateOf(tenant, money);
    expect(nano(spent)).toBe(nano(booked.cost));
    expect(nano(spent)).toBeGreaterThan(0n);
    expect(await metric(platform.server.admin, 'postern_settlements_unknown_charges_total')).toBe(0);
  });
});
