/** Budgets in explanations, in /v1/auth/me and in the comparison with the last month. */

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
  const body = { description: 'k', scopes: ['chat:write', 'models:read'], expires_in_days: 1, metadata: { team: 'a' } };
  const made = await h.api('POST', '/v1/iam/api-keys', { as: boss.token, body });
  key = { id: text(made.json, 'id'), secret: text(made.json, 'key') };
  const prices = [{ models: 'gpt-*', input: '1.00', output: '2.00', per: 1000 }];
  const tag = String((await h.api('GET', '/v1/iam/prices', { as: h.root.token })).headers['etag']);
  const priced = await h.api('PUT', '/v1/iam/prices', {
    as: h.root.token,
    body: { prices },
    headers: { 'if-match': tag },
  });
  expect(outcome(priced)).toBe('200');
});
beforeEach(async () => {
  for (const table of ['budgets', 'token_budgets', 'usage_daily'])
    await h.db.knex.raw(`delete from ${table} where tenant_id = ?`, [ACME]);
});

async function make(name: string, members: object): Promise<string> {
  const body = { name, unit: 'tokens', limit: 1000, period: 'month', applies_to: { tenant: true }, ...members };
  const reply = await h.api('POST', '/v1/iam/budgets', { as: boss.token, body });
  expect([outcome(reply), reply.json['errors']]).toEqual(['201', undefined]);
  return text(reply.json, 'id');
}
const month = () => new Date().toISOString().slice(0, 7);
const spend = (period: string, spent: number, held = 0) =>
  h.db.knex('token_budgets').insert({ tenant_id: ACME, period, spent, held });

describe('an explanation', () => {
  const CHAT = { method: 'POST', path: '/v1/chat/completions', body: '{"model":"gpt-4","max_tokens":100}' };
  const explain = async (members: object = {}, as = boss.token): Promise<Json> => {
    const body = { ...(as === boss.token ? { credential: key.secret } : {}), ...CHAT, ...members };
    const reply = await h.api('POST', '/v1/iam/explain', { as, body });
    expect(outcome(reply)).toBe('200');
    return reply.json;
  };

  test('lists the budgets that count the request, with what it needs, and the first that blocks ends step 17', async () => {
    const ids = {
      a: await make('a-report', { action: 'report', limit: 10 }),
      b: await make('b-money', { unit: 'money', limit: '0.25', models: ['gpt-*'] }),
      c: await make('c-requests', { unit: 'requests', limit: 1, per: 'key', period: 'total' }),
    };
    await make('d-other-model', { models: ['llama-*'], limit: 0 });
    await make('e-other-team', { applies_to: { metadata: { team: 'b' } }, limit: 0 });
    await spend(`${ids.b} ${month()}#0`, 40_000_000, 10_000_000);
    const allowed = await explain();
    const shared = { period: 'month', caller: null, resets_at: expect.any(String) };
    expect(allowed['budgets']).toEqual([
      {
        ...shared,
        id: ids.a,
        name: 'a-report',
        unit: 'tokens',
        action: 'report',
        limit: 10,
        spent: 0,
        reserved: 0,
        needed: 102,
        exceeded: true,
      },
      {
        ...shared,
        id: ids.b,
        name: 'b-money',
        unit: 'money',
        action: 'block',
        limit: '0.25',
        spent: '0.04',
        reserved: '0.01',
        needed: '0.202',
        exceeded: false,
      },
      {
        id: ids.c,
        name: 'c-requests',
        unit: 'requests',
        action: 'block',
        period: 'total',
        caller: key.id,
        limit: 1,
        spent: 0,
        reserved: 0,
        needed: 1,
        resets_at: null,
        exceeded: false,
      },
    ]);
    expect(allowed).toMatchObject({ decision: 'allow' });
    await spend(`${ids.c}/${key.id} total#0`, 1);
    expect(await explain()).toMatchObject({
      decision: 'deny',
      status: 429,
      code: 'insufficient_quota',
      detail: 'This request may spend more than the budget "c-requests" has left. It does not reset by itself.',
    });
    expect((await explain({ method: 'GET', path: '/v1/models', body: '' }))['budgets']).toEqual([]);
  });

  test('of a simulation has the same budgets', async () => {
    await make('none', { limit: 0 });
    const body = { credential: key.secret, ...CHAT };
    const reply = await h.api('POST', '/v1/iam/explain/simulate', { as: boss.token, body });
    expect(reply.json).toMatchObject({
      code: 'insufficient_quota',
      budgets: [{ name: 'none', limit: 0, exceeded: true }],
      current: { code: 'insufficient_quota' },
    });
  });

  test('of a simulation that deletes a role has no budget of the former holders', async () => {
    const contractor = await h.api('POST', '/v1/iam/roles', {
      as: boss.token,
      body: { name: 'contractor', permissions: [] },
    });
    expect(outcome(contractor)).toBe('201');
    await make('both', { limit: 900, applies_to: { roles: ['contractor', 'developer'] } });
    await make('contractors', { limit: 0, applies_to: { roles: ['contractor'] } });
    const { id: subject } = await h.person(ACME, ['contractor', 'developer']);
    const simulate = async (change: object): Promise<Json> => {
      const body = { subject, ...CHAT, ...change };
      return (await h.api('POST', '/v1/iam/explain/simulate', { as: boss.token, body })).json;
    };
    expect(await simulate({})).toMatchObject({
      decision: 'deny',
      budgets: [{ name: 'both' }, { name: 'contractors' }],
    });
    const without = await simulate({ remove: { roles: ['contractor'] } });
    expect(without).toMatchObject({ decision: 'allow', current: { code: 'insufficient_quota' } });
    expect(without['budgets']).toMatchObject([{ name: 'both' }]);
    expect(without['budgets']).toHaveLength(1);
  });

  test('shows a caller without usage:read no amount that it shares', async () => {
    await make('shared', {});
    await make('own', { per: 'user', applies_to: { roles: ['developer'] } });
    const user = await h.person(ACME, ['developer']);
    expect((await explain({ subject: user.id }, user.token))['budgets']).toMatchObject([
      { name: 'own', limit: 1000, spent: 0, caller: user.id },
      { name: 'shared', limit: null, spent: null, reserved: null, caller: null },
    ]);
  });
});

describe('GET /v1/auth/me', () => {
  const budgetsOf = async (as: string) => (await h.api('GET', '/v1/auth/me', { as })).json['budgets'];

  test('shows the budgets of the caller, and amounts only of those that are its own or that it may read', async () => {
    const own = await make('b-own', {
      unit: 'money',
      limit: '5.00',
      applies_to: { keys: [key.id] },
      models: ['gpt-*'],
    });
    await make('a-team', { applies_to: { metadata: { team: 'a' } }, action: 'report' });
    const each = await make('c-each', { per: 'key', period: 'total' });
    await make('d-none', { applies_to: { metadata: { team: 'b' } } });
    await make('e-off', { enabled: false });
    await spend(`${own} ${month()}#0`, 1_500_000_000, 500_000_000);
    await spend(`${each}/${key.id} total#0`, 7);
    const reset = expect.stringMatching(/^\d{4}-\d\d-01T00:00:00.000Z$/);
    const team = { name: 'a-team', unit: 'tokens', period: 'month', action: 'report', models: null, resets_at: reset };
    expect(await budgetsOf(key.secret)).toEqual([
      team,
      {
        name: 'b-own',
        unit: 'money',
        period: 'month',
        action: 'block',
        models: ['gpt-*'],
        resets_at: reset,
        limit: '5.00',
        spent: '1.50',
        reserved: '0.50',
        remaining: '3.00',
      },
      {
        name: 'c-each',
        unit: 'tokens',
        period: 'total',
        action: 'block',
        models: null,
        resets_at: null,
        limit: 1000,
        spent: 7,
        reserved: 0,
        remaining: 993,
      },
    ]);
    await make('f-all', {});
    expect(await budgetsOf(boss.token)).toMatchObject([{ name: 'c-each' }, { name: 'f-all', spent: 0, limit: 1000 }]);
    expect(await budgetsOf(h.root.token)).toEqual([]);
  });
});

describe('the comparison of a new budget with the last month', () => {
  const now = new Date();
  const first = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - 1, 1));
  const day = (n: number): string => new Date(first.getTime() + (n - 1) * 86_400_000).toISOString().slice(0, 10);
  const use = (n: number, members: object) =>
    h.db.knex('usage_daily').insert({
      tenant_id: ACME,
      day: day(n),
      model: 'm',
      key_id: '',
      user_id: '',
      requests: 10,
      total_tokens: 100,
      cost: 0,
      ...members,
    });
  const preview = async (members: object) => {
    const body = { name: 'new', unit: 'tokens', limit: 250, period: 'month', applies_to: { tenant: true }, ...members };
    const reply = await h.api('POST', '/v1/iam/budgets/preview', { as: boss.token, body });
    expect(outcome(reply)).toBe('200');
    return reply.json;
  };
  const lastDay = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), 0)).toISOString().slice(0, 10);

  test('shows sums that are larger than an exact number', async () => {
    for (const n of [1, 2, 3]) await use(n, { cost: 5e15 });
    expect(await preview({ unit: 'money', limit: '1.00' })).toMatchObject({
      periods: [{ spent: '15000000.00', blocked: '14999999.00' }],
      blocked: '14999999.00',
    });
  });

  test('shows when the limit was reached, and the requests and the amount after that', async () => {
    for (const n of [2, 5, 9, 12]) await use(n, { key_id: key.id, cost: 1_000_000_000 });
    await use(3, { key_id: key.id, model: 'other' });
    const month = { starts_on: day(1), callers: 1, requests: 40 };
    expect(await preview({ models: ['m'] })).toEqual({
      from: day(1),
      to: lastDay,
      // Half of the requests of the ninth, and those of the twelfth.
      periods: [{ ...month, spent: 400, reached_on: day(9), callers_reached: 1, blocked_requests: 15, blocked: 150 }],
      requests: 40,
      blocked_requests: 15,
      blocked: 150,
    });
    expect(await preview({ unit: 'money', limit: '4.00', models: ['m'] })).toMatchObject({
      periods: [{ ...month, spent: '4.00', reached_on: day(12), callers_reached: 1, blocked_requests: 0 }],
      blocked: '0.00',
    });
    expect(await preview({ period: 'day', limit: 99 })).toMatchObject({
      periods: [2, 3, 5, 9, 12].map((n) => ({
        starts_on: day(n),
        reached_on: day(n),
        blocked_requests: 1,
        blocked: 1,
      })),
      blocked_requests: 5,
      blocked: 5,
    });
    expect(await preview({ applies_to: { metadata: { team: 'b' } } })).toMatchObject({ periods: [], blocked: 0 });
    expect(await preview({ period: 'hour' })).toMatchObject({ periods: null, requests: 0 });
  });

  test('counts the amounts of the callers apart if each has its own', async () => {
    const other = `key_${'0'.repeat(26)}`;
    for (const n of [1, 2, 3]) await use(n, { key_id: key.id });
    await use(2, { key_id: other });
    expect(await preview({ per: 'key', limit: 150 })).toMatchObject({
      periods: [{ callers: 2, callers_reached: 1, spent: 400, blocked: 150, reached_on: day(2) }],
    });
  });

  test('has weeks from Monday to Sunday, of which the first may begin before the month', async () => {
    const monday = (n: number): string => {
      const date = new Date(first.getTime() + (n - 1) * 86_400_000);
      return new Date(date.getTime() - ((date.getUTCDay() + 6) % 7) * 86_400_000).toISOString().slice(0, 10);
    };
    for (let n = 1; n <= 28; n++) await use(n, {});
    const found = (await preview({ period: 'week', limit: 1 }))['periods'];
    const starts = Array.isArray(found) ? found.map(({ starts_on }) => starts_on) : [];
    expect(starts).toEqual([...new Set(Array.from({ length: 28 }, (_, i) => monday(i + 1)))]);
  });
});
