/** Steps 15 to 17 of an explanation: the state of each limit, read and never counted. */

import { beforeEach, describe, expect, test } from 'vitest';
import { type Harness, it, type Json, outcome, type Person, text, unique } from './harness.ts';

const ACME = unique('acme');

let h: Harness;
let boss: Person;
let key = { id: '', secret: '' };
it.beforeAll(async ({ harness }) => {
  h = harness;
  await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id: ACME, name: ACME } });
  boss = await h.person(ACME, ['tenant-admin']);
  const made = await h.api('POST', '/v1/iam/api-keys', {
    as: boss.token,
    body: {
      description: 'k',
      scopes: ['chat:write', 'rag:write', 'models:read'],
      expires_in_days: 1,
      rate_limit_rpm: 5,
    },
  });
  key = { id: text(made.json, 'id'), secret: text(made.json, 'key') };
});
beforeEach(async () => {
  await h.db.knex.raw('delete from rate_windows');
  await h.db.knex.raw('delete from token_budgets');
  await h.db.knex.raw('delete from collection_counts');
  await limit({
    settings: { rate_limit_rpm: null, rate_limits: null, max_tokens_per_request: null, require_stream_usage: null },
    quotas: { monthly_tokens: null, max_collections: null },
  });
});

const limit = (body: object) => h.api('PUT', `/v1/iam/tenants/${ACME}`, { as: h.root.token, body });
const CHAT = { method: 'POST', path: '/v1/chat/completions', body: '{"model":"mm","max_tokens":100}' };
const COLLECTION = { method: 'POST', path: '/v1/rag/collections', body: '{}' };
const explain = async (body: object): Promise<Json> => {
  const reply = await h.api('POST', '/v1/iam/explain', {
    as: boss.token,
    body: { credential: key.secret, ...CHAT, ...body },
  });
  expect(outcome(reply)).toBe('200');
  return reply.json;
};
const list = (json: Json, name: string): readonly Json[] => {
  const value = json[name];
  if (!Array.isArray(value)) throw new Error(`no ${name}`);
  return value;
};
const limitOf = (json: Json, name: string, of = 'tenant') =>
  list(json, 'limits').find((one) => one['name'] === name && one['of'] === of);
const outcomes = (json: Json) =>
  list(json, 'steps')
    .slice(14)
    .map((step) => step['outcome']);
/** Uses up a rate in the current window and the next, so that a border between them has no effect. */
const grant = (subject: string, granted: number) =>
  h.db.knex.raw(
    `insert into rate_windows (subject, number, granted)
     select :subject, floor(extract(epoch from clock_timestamp()) / 60)::bigint + n, :granted from generate_series(0, 1) n`,
    { subject, granted },
  );
const spend = (spent: number, held = 0) =>
  h.db.knex.raw(
    `insert into token_budgets (tenant_id, period, spent, held) values ('${ACME}', to_char(now() at time zone 'UTC', 'YYYY-MM'), :spent, :held)`,
    { spent, held },
  );

describe('an explanation of an allowed request', () => {
  test('shows every limit, also those that are not set', async () => {
    const json = await explain({});
    expect(json['code']).toBe('allow');
    expect(outcomes(json)).toEqual(['passed', 'passed', 'passed', 'allowed']);
    expect(list(json, 'limits').map(({ name, of, line }) => [name, of, line])).toEqual([
      ['max_tokens_per_request', 'tenant', 15],
      ['rate_limit_rpm', 'tenant', 16],
      ['rate_limit_rpm', 'api_key', 16],
      ['monthly_tokens', 'tenant', 17],
      ['max_collections', 'tenant', 17],
    ]);
    expect(limitOf(json, 'rate_limit_rpm')).toMatchObject({
      limit: null,
      remaining: null,
      applies: false,
      resets_at: null,
    });
  });

  test("adds the prompt's estimate and the answer's bound as the reservation", async () => {
    await limit({ quotas: { monthly_tokens: 1000 } });
    await spend(300, 50);
    const json = await explain({
      body: '{"model":"mm","n":2,"max_tokens":100,"messages":[{"role":"user","content":"12345678"}]}',
    });
    // Texts of 2, 4 and 8 bytes and names of 4 and 7, a quarter of it rounded up, and two answers of 100 tokens.
    expect(limitOf(json, 'monthly_tokens')).toEqual({
      name: 'monthly_tokens',
      of: 'tenant',
      line: 17,
      applies: true,
      limit: 1000,
      used: 300,
      reserved: 50,
      remaining: 700,
      resets_at: expect.stringMatching(/-01T00:00:00.000Z$/),
      needed: 7 + 200,
      exceeded: false,
    });
    expect(limitOf(await explain({ body: '{"model":"mm"}' }), 'monthly_tokens')).toMatchObject({
      needed: 1 + 1024,
      exceeded: true,
    });
  });

  test('does not count tokens on a route that spends none', async () => {
    await limit({ quotas: { monthly_tokens: 0 } });
    const json = await explain({ method: 'GET', path: '/v1/models', body: '' });
    expect(json['code']).toBe('allow');
    expect(limitOf(json, 'monthly_tokens')).toMatchObject({ applies: false, needed: 0, exceeded: false });
  });

  test('changes no counter', async () => {
    await limit({ settings: { rate_limit_rpm: 10 }, quotas: { monthly_tokens: 1000, max_collections: 3 } });
    await grant(`tenant:${ACME}`, 1);
    await spend(1);
    const tables = [
      'rate_windows',
      'token_budgets',
      'token_holds',
      'collection_counts',
      'collection_reservations',
      'usage_daily',
    ];
    const state = async () =>
      Promise.all(
        tables.map(async (table) => (await h.db.knex.raw<{ rows: unknown[] }>(`select * from ${table}`)).rows),
      );
    const before = await state();
    for (const body of [{}, COLLECTION]) await explain(body);
    expect(await state()).toEqual(before);
  });
});

describe('an explanation with limits by model', () => {
  test('shows those of the most specific globs at step 16, and ends there if one has no room', async () => {
    const rules = [
      { models: ['*'], requests_per_minute: 9, tokens_per_minute: 5000, parallel: 3 },
      { models: ['m*'], requests_per_minute: 2 },
      { models: ['other'], requests_per_minute: 1 },
    ];
    await limit({ settings: { rate_limits: rules } });
    const own = [{ models: ['mm'], tokens_per_minute: 200 }];
    await h.api('PUT', `/v1/iam/api-keys/${key.id}`, { as: boss.token, body: { rate_limits: own } });
    const byModel = (json: Json) => list(json, 'limits').filter((one) => one['models'] !== undefined);
    const shown = (one: Json) => [one['of'], one['name'], one['models'], one['limit'], one['needed'], one['exceeded']];
    const json = await explain({});
    expect(json['code']).toBe('allow');
    expect(byModel(json).map(shown)).toEqual([
      ['tenant', 'requests_per_minute', ['m*'], 2, 1, false],
      ['tenant', 'tokens_per_minute', ['*'], 5000, 101, false],
      ['tenant', 'parallel', ['*'], 3, 1, false],
      ['api_key', 'tokens_per_minute', ['mm'], 200, 101, false],
    ]);
    expect(byModel(await explain({ method: 'GET', path: '/v1/models', body: '' }))).toEqual([]);
    const large = await explain({ body: '{"model":"mm","max_tokens":200}' });
    expect(large).toMatchObject({
      status: 429,
      code: 'rate_limit_exceeded',
      detail: expect.stringContaining("the key's 200 tokens per minute for the models mm"),
    });
    expect(outcomes(large)).toEqual(['passed', 'denied', 'not_evaluated', 'not_evaluated']);
    await h.api('PUT', `/v1/iam/api-keys/${key.id}`, { as: boss.token, body: { rate_limits: null } });
  });
});

describe('an explanation ends', () => {
  test("at step 16 if the tenant's rate limit is used up", async () => {
    await limit({ settings: { rate_limit_rpm: 3 } });
    await grant(`tenant:${ACME}`, 3);
    const json = await explain({});
    expect(json).toMatchObject({ decision: 'deny', status: 429, code: 'rate_limit_exceeded' });
    expect(outcomes(json)).toEqual(['passed', 'denied', 'not_evaluated', 'not_evaluated']);
    expect(limitOf(json, 'rate_limit_rpm')).toMatchObject({
      limit: 3,
      used: 3,
      remaining: 0,
      needed: 1,
      exceeded: true,
    });
    expect(Date.parse(String(limitOf(json, 'rate_limit_rpm')?.['resets_at']))).toBeGreaterThan(Date.now() - 5000);
  });

  test("at step 16 if the key's own rate limit is used up", async () => {
    await grant(`key:${key.id}`, 5);
    const json = await explain({});
    expect(json).toMatchObject({ status: 429, code: 'rate_limit_exceeded', detail: expect.stringContaining("key's") });
    expect(limitOf(json, 'rate_limit_rpm', 'api_key')).toMatchObject({
      limit: 5,
      used: 5,
      remaining: 0,
      exceeded: true,
    });
  });

  test('at step 17 if the request may spend more than the month has left', async () => {
    await limit({ quotas: { monthly_tokens: 100 } });
    const json = await explain({});
    expect(json).toMatchObject({
      status: 429,
      code: 'insufficient_quota',
      detail: expect.stringMatching(/101 tokens.* fewer left/),
    });
    expect(outcomes(json)).toEqual(['passed', 'passed', 'denied', 'not_evaluated']);
    await limit({ quotas: { monthly_tokens: 101 } });
    expect((await explain({}))['code']).toBe('allow');
  });

  test('at step 17 if the month has nothing left for a request that reports its usage only with its end', async () => {
    const image = { credential: undefined, subject: boss.id, path: '/v1/images/generations', body: '{"model":"mm"}' };
    await limit({ quotas: { monthly_tokens: 0 } });
    const json = await explain(image);
    expect(json).toMatchObject({ status: 429, code: 'insufficient_quota' });
    expect(limitOf(json, 'monthly_tokens')).toMatchObject({ applies: true, needed: 1, remaining: 0, exceeded: true });
    await limit({ quotas: { monthly_tokens: 1 } });
    expect((await explain(image))['code']).toBe('allow');
    const read = await explain({ method: 'GET', path: '/v1/models', body: undefined });
    expect(limitOf(read, 'monthly_tokens')).toMatchObject({ applies: false, needed: 0, exceeded: false });
  });

  test('at step 17 if the tenant has as many collections as it may', async () => {
    await limit({ quotas: { max_collections: 1 } });
    expect((await explain(COLLECTION))['code']).toBe('allow');
    await h.db.knex.raw(`insert into collection_counts (tenant_id, count) values ('${ACME}', 1)`);
    const json = await explain(COLLECTION);
    expect(json).toMatchObject({ status: 429, code: 'insufficient_quota' });
    expect(limitOf(json, 'max_collections')).toMatchObject({
      limit: 1,
      used: 1,
      remaining: 0,
      needed: 1,
      exceeded: true,
    });
  });

  test("at step 15 if the body names more tokens than the tenant's limit", async () => {
    await limit({ settings: { max_tokens_per_request: 50 } });
    const json = await explain({});
    expect(json).toMatchObject({ status: 400, code: 'max_tokens_exceeded' });
    expect(outcomes(json)).toEqual(['denied', 'not_evaluated', 'not_evaluated', 'not_evaluated']);
    expect(list(json, 'limits')).toEqual([
      expect.objectContaining({ line: 15, limit: 50, needed: 100, exceeded: true }),
    ]);
  });

  test('at step 15 if the tenant requires the usage of streams, and the body does not ask for it', async () => {
    await limit({ settings: { require_stream_usage: true, max_tokens_per_request: 50 } });
    const json = await explain({ body: '{"model":"mm","stream":true}' });
    expect(json).toMatchObject({
      status: 400,
      code: 'usage_required',
      detail: expect.stringContaining('include_usage'),
    });
    expect(outcomes(json)).toEqual(['denied', 'not_evaluated', 'not_evaluated', 'not_evaluated']);
    expect(list(json, 'limits')).toEqual([
      expect.objectContaining({ line: 15, limit: 50, needed: null, exceeded: false }),
    ]);
    const body = '{"model":"mm","stream":true,"stream_options":{"include_usage":true}}';
    expect((await explain({ body }))['code']).toBe('allow');
  });

  test('at an earlier step without any limit', async () => {
    await limit({ quotas: { monthly_tokens: 0 } });
    const json = await explain({ path: '/v1/embeddings' });
    expect(json['code']).toBe('insufficient_permission');
    expect(json['limits']).toEqual([]);
  });
});

test("a caller without admin:policies and usage:read learns whether its request fits, and not the tenant's usage", async () => {
  await limit({ settings: { rate_limit_rpm: 7 }, quotas: { monthly_tokens: 100 } });
  await spend(33, 1);
  await grant(`tenant:${ACME}`, 2);
  const ask = async (roles: readonly string[], maxTokens: number): Promise<Json> => {
    const { id, token } = await h.person(ACME, roles);
    const body = { ...CHAT, body: `{"model":"mm","max_tokens":${maxTokens}}`, subject: id };
    return (await h.api('POST', '/v1/iam/explain', { as: token, body })).json;
  };
  for (const [maxTokens, code] of [
    [66, 'allow'],
    [67, 'insufficient_quota'],
  ] as const) {
    const json = await ask(['developer'], maxTokens);
    expect(json['code']).toBe(code);
    for (const one of list(json, 'limits')) expect(one).toMatchObject({ used: null, reserved: null, remaining: null });
    expect(JSON.stringify(json['steps'])).not.toMatch(/\b(33|67)\b.*left/);
    expect(limitOf(await ask(['developer', 'auditor'], maxTokens), 'monthly_tokens')).toMatchObject({
      used: 33,
      remaining: 67,
    });
  }
});

test('a simulation shows the limits with the proposal and the current ones', async () => {
  await limit({ quotas: { monthly_tokens: 0 } });
  const reply = await h.api('POST', '/v1/iam/explain/simulate', {
    as: boss.token,
    body: {
      credential: key.secret,
      ...CHAT,
      policies: [{ name: 'no-chat', effect: 'deny', actions: ['chat:*'], resources: ['*'] }],
    },
  });
  expect(reply.json).toMatchObject({ code: 'denied_by_policy', limits: [], current: { code: 'insufficient_quota' } });
});
