/** /v1/iam/prices: the list in force, who may replace it, and what usage costs by it. */

import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { NO_CACHE } from '../../src/cli/with-store.ts';
import { importPrices } from '../../src/iam/prices/prices.ts';
import { parsePrices } from '../../src/iam/prices/rules.ts';
import { type Harness, type Json, outcome, type Person, rows, startHarness, text } from './harness.ts';

const PRICES = '/v1/iam/prices';
const MILLION = 1_000_000;

let h: Harness;
let auditor: Person;
let admin: Person;
let developer: Person;

beforeAll(async () => {
  h = await startHarness();
  await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id: 'acme', name: 'Acme' } });
  auditor = await h.person('acme', ['auditor']);
  admin = await h.person('acme', ['tenant-admin']);
  developer = await h.person('acme', ['developer']);
});
afterAll(async () => {
  await h?.close();
});

const price = (models: string, members: Json = {}): Json => ({
  models,
  input: '1',
  output: '2',
  per: MILLION,
  ...members,
});
const put = (prices: readonly Json[], as = h.root.token, headers = {}) =>
  h.api('PUT', PRICES, { as, body: { prices }, headers });
const get = (as = h.root.token) => h.api('GET', PRICES, { as });

describe('the list', () => {
  test('is shown with its version, in the order of its globs, and with exact amounts for a million tokens', async () => {
    const before = await get();
    const reply = await put([
      price('llama-*', { input: '0.20', output: '0.6', cached_input: '0.050', per: MILLION }),
      price('*-large', { input: '0.000000000000001', output: '9', cache_write: '0.0000035', per: 1 }),
      price('gpt-4o', { input: '0.0025', output: '0.01', per: 1000 }),
    ]);
    expect(reply.json).toEqual({
      version: Number(before.json['version']) + 1,
      currency: 'USD',
      set_at: expect.any(String),
      prices: [
        { models: '*-large', input: '0.000000001', output: '9000000.00', cache_write: '3.50', per: MILLION },
        { models: 'gpt-4o', input: '2.50', output: '10.00', per: MILLION },
        { models: 'llama-*', input: '0.20', output: '0.60', cached_input: '0.05', per: MILLION },
      ],
    });
    const shown = await get(auditor.token);
    expect(shown.json).toEqual(reply.json);
    expect(shown.headers['etag']).toBe(reply.headers['etag']);
  });

  test('is replaced by platform administrators only, and read with usage:read', async () => {
    for (const { token } of [admin, auditor, developer]) {
      expect(outcome(await put([price('x')], token))).toBe('403 insufficient_permission');
      expect(outcome(await h.api('GET', `${PRICES}/proposal`, { as: token }))).toBe('403 insufficient_permission');
    }
    expect(outcome(await get(developer.token))).toBe('403 insufficient_permission');
    expect(outcome(await get(admin.token))).toBe('200');
  });

  test('replaces no list that the caller has not seen', async () => {
    const seen = text((await get()).headers as Json, 'etag');
    expect(outcome(await put([price('a')], h.root.token, { 'if-match': seen }))).toBe('200');
    expect(outcome(await put([price('b')], h.root.token, { 'if-match': seen }))).toBe('412 precondition_failed');
    expect((await get()).json['prices']).toMatchObject([{ models: 'a' }]);
  });

  test('that twenty callers set at once has twenty versions, and only one of them replaces the list that all have seen', async () => {
    const before = Number((await get()).json['version']);
    const seen = text((await get()).headers as Json, 'etag');
    const all = Array.from({ length: 20 }, (_, n) => put([price(`m-${n}`)], h.root.token, { 'if-match': seen }));
    const outcomes = (await Promise.all(all)).map(outcome);
    expect(outcomes.filter((one) => one === '200')).toHaveLength(1);
    const versions = await Promise.all(Array.from({ length: 20 }, (_, n) => put([price(`n-${n}`)])));
    const found = versions.map(({ json }) => Number(json['version'])).sort((a, b) => a - b);
    expect(found).toEqual(Array.from({ length: 20 }, (_, n) => before + 2 + n));
  });

  test('leaves an audit row with the prices that changed', async () => {
    await put([price('kept'), price('changed'), price('removed')]);
    await put([price('kept'), price('changed', { input: '5' }), price('added')]);
    expect((await h.audit('prices.update')).at(-1)).toMatchObject({
      tenant_id: null,
      actor_id: h.root.id,
      before: { prices: 3, differing: 2, shown: [{ models: 'changed', input: '1.00' }, { models: 'removed' }] },
      after: { prices: 3, differing: 2, shown: [{ models: 'added' }, { models: 'changed', input: '5.00' }] },
    });
  });

  test.each([
    [price(''), '/prices/0/models'],
    [price('a*b*c*d*e*f*g*h*i*j'), '/prices/0/models'],
    [price('x', { input: 1 }), '/prices/0/input'],
    [price('x', { input: '-1' }), '/prices/0/input'],
    [price('x', { input: '1e3' }), '/prices/0/input'],
    [price('x', { output: '0.0000000001' }), '/prices/0/output'],
    [price('x', { output: '0.0000000000001', per: 1000 }), '/prices/0/output'],
    [price('x', { cached_input: '9000000.000000001' }), '/prices/0/cached_input'],
    [price('x', { cache_write: '9.000000000000001', per: 1 }), '/prices/0/cache_write'],
    [price('x', { per: 100 }), '/prices/0/per'],
    [price('x', { per: undefined }), '/prices/0/per'],
  ])('has no price such as %j', async (wrong, path) => {
    const reply = await put([wrong]);
    expect([outcome(reply), reply.json['errors']]).toEqual(['422 invalid_field', [expect.objectContaining({ path })]]);
  });

  test('has each glob once, and at most 2,500 prices', async () => {
    const many = Array.from({ length: 2501 }, (_, n) => price(`model-${n}`));
    expect(outcome(await put(many))).toBe('422 invalid_field');
    const most = await put(many.slice(1).map((one) => ({ ...one, cached_input: '0.1', cache_write: '1.25' })));
    expect([outcome(most), Object(most.json['prices']).length]).toEqual(['200', 2500]);
    const twice = await put([price('x'), price('y'), price('x')]);
    expect(twice.json['errors']).toMatchObject([
      { path: '/prices/2/models', message: expect.stringContaining('/prices/0') },
    ]);
  });
});

describe('the table of the release', () => {
  test('is compared with the list in force, and changes nothing', async () => {
    const proposed = await h.api('GET', `${PRICES}/proposal?provider=anthropic&q=CLAUDE-SONNET-4-5`, {
      as: h.root.token,
    });
    const [first] = rows(proposed);
    expect(first).toMatchObject({ change: 'added', provider: 'anthropic', current: null, left_out: ['tiers'] });
    const { price: accepted } = Object(first);
    const set = await put([{ ...accepted, input: '7' }, price('own')]);
    const again = await h.api('GET', `${PRICES}/proposal?provider=anthropic&q=${accepted.models}`, {
      as: h.root.token,
    });
    expect(rows(again)[0]).toMatchObject({ change: 'changed', price: accepted, current: { input: '7.00' } });
    expect((await get()).json).toEqual(set.json);
    expect(rows(await h.api('GET', `${PRICES}/proposal?provider=nobody`, { as: h.root.token }))).toEqual([]);
  });

  test('can be accepted as a whole', async () => {
    const all = rows(await h.api('GET', `${PRICES}/proposal`, { as: h.root.token }));
    expect(all.length).toBeGreaterThan(1000);
    expect(outcome(await put(all.map((row) => Object(row['price']))))).toBe('200');
    const changes = rows(await h.api('GET', `${PRICES}/proposal`, { as: h.root.token })).map((row) => row['change']);
    expect(new Set(changes)).toEqual(new Set(['unchanged']));
  });
});

describe('an import by the operator', () => {
  const imported = (seen: number, replaces: boolean, ...names: readonly string[]) =>
    importPrices(
      { db: h.db, ...NO_CACHE },
      {
        prices: parsePrices(names.map((models) => ({ models, input: '3', output: '3', per: MILLION }))),
        replaces,
        seen,
      },
    );
  const names = async () => Object(await get()).json.prices.map(({ models }: Json) => models);

  test('adds prices, or replaces the list, and only the list that the operator has seen', async () => {
    const { version } = Object((await put([price('own'), price('both')])).json);
    expect((await imported(version, false, 'both', 'new'))?.version).toBe(version + 1);
    expect(await names()).toEqual(['both', 'new', 'own']);
    expect(await imported(version, true, 'other')).toBeUndefined();
    expect(await names()).toEqual(['both', 'new', 'own']);
    await imported(version + 1, true, 'other');
    expect(await names()).toEqual(['other']);
    expect((await h.audit('prices.update')).at(-1)).toMatchObject({ actor_type: 'system', before: { differing: 3 } });
  });
});

describe('usage that a platform reports', () => {
  const event = (members: Json = {}): Json => ({
    id: randomUUID(),
    model: 'llama-3',
    time: new Date().toISOString(),
    prompt_tokens: 100,
    completion_tokens: 10,
    ...members,
  });
  const report = async (tenant: string, ...events: readonly Json[]) => {
    const reply = await h.api('POST', '/v1/iam/usage/events', { as: h.root.token, tenant, body: { events } });
    expect(outcome(reply)).toBe('200');
  };
  const usage = async (tenant: string, query = '') =>
    (await h.api('GET', `/v1/iam/usage?tenant_id=${tenant}${query}`, { as: h.root.token })).json;
  let tenants = 0;
  const freshTenant = async (settings: Json = {}) => {
    const id = `reporting-${++tenants}`;
    await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id, name: id, settings } });
    return id;
  };
  const clock = async () => {
    const { rows: found } = await h.db.knex.raw<{ rows: { now: Date }[] }>('select clock_timestamp() as now');
    return found[0]?.now.toISOString() ?? '';
  };

  test('costs the sum of its kinds of tokens, and says which requests have no price', async () => {
    const tenant = await freshTenant();
    await put([
      price('llama-*', { input: '1', output: '2', cached_input: '0.1', cache_write: '1.25' }),
      price('free', { input: '0', output: '0' }),
    ]);
    await report(
      tenant,
      event({ cached_tokens: 40, cache_write_tokens: 20, total_tokens: 120, requests: 3 }),
      event({ model: 'free' }),
      event({ model: 'unknown', requests: 2 }),
    );
    // 40 tokens of input, 40 of the cache, 20 to the cache, 10 of output, and 10 more.
    expect(await usage(tenant, '&group_by=model&sort=-cost')).toMatchObject({
      total: { requests: 6, cost: '0.000099', unpriced_requests: 2 },
      data: [
        { model: 'llama-3', cost: '0.000099', unpriced_requests: 0 },
        { model: 'unknown', cost: '0.00', unpriced_requests: 2 },
        { model: 'free', cost: '0.00', unpriced_requests: 0 },
      ],
    });
  });

  test('costs what the list of its time says, also after another list was set', async () => {
    const tenant = await freshTenant();
    await put([price('llama-*', { input: '1', output: '0' })]);
    const earlier = await clock();
    // The times of events are milliseconds, so the next list must not be of the same one.
    await expect.poll(clock).not.toBe(earlier);
    await put([price('llama-*', { input: '5', output: '0' })]);
    const later = await clock();
    await report(
      tenant,
      event({ time: earlier, prompt_tokens: MILLION }),
      event({ time: later, prompt_tokens: MILLION }),
    );
    expect((await usage(tenant))['total']).toMatchObject({ cost: '6.00' });
    await put([]);
    expect((await usage(tenant))['total']).toMatchObject({ cost: '6.00', unpriced_requests: 0 });
  });

  test('without a price is in the overview, the model with the most requests first', async () => {
    const tenant = await freshTenant();
    await report(tenant, event({ model: 'seldom' }), event({ model: 'often', requests: 2 }));
    const overview = async () => (await h.api('GET', `/v1/iam/overview`, { as: h.root.token, tenant })).json;
    await put([price('sel*')]);
    await report(tenant, event({ model: 'seldom' }));
    const unpriced = [
      { model: 'often', requests: 2 },
      { model: 'seldom', requests: 1 },
    ];
    expect(await overview()).toMatchObject({ unpriced_models: unpriced });
  });

  test('that is older than every list has no price', async () => {
    const tenant = await freshTenant();
    await put([price('llama-*')]);
    await report(tenant, event({ time: new Date(Date.now() - 20 * 86_400_000).toISOString() }));
    const month = new Date(Date.now() - 20 * 86_400_000).toISOString().slice(0, 10);
    expect((await usage(tenant, `&from=${month}`))['total']).toMatchObject({ cost: '0.00', unpriced_requests: 1 });
  });

  test('counts in each budget that selects its key, owner, role, metadata, tenant and model', async () => {
    const tenant = await freshTenant();
    await put([price('llama-*', { input: '1', output: '0' })]);
    const owner = await h.person(tenant, ['developer']);
    const make = async (body: Json, as = h.root.token) => {
      const given = { description: 'k', scopes: ['chat:read'], expires_in_days: 1, ...body };
      const reply = await h.api('POST', '/v1/iam/api-keys', { as, tenant, body: given });
      expect(outcome(reply)).toBe('201');
      return text(reply.json, 'id');
    };
    const own = await make({ user_id: owner.id, metadata: { team: 'search' } });
    const other = await make({});
    const budgets = new Map<string, string>();
    for (const [name, members] of Object.entries<Json>({
      'of-tenant': { unit: 'money', limit: '100', applies_to: { tenant: true } },
      'of-key': { unit: 'tokens', limit: 1000, applies_to: { keys: [own] } },
      'of-user': { unit: 'requests', limit: 1000, applies_to: { users: [owner.id] } },
      'of-role': { unit: 'requests', limit: 1000, applies_to: { roles: ['developer'] }, per: 'user' },
      'of-metadata': { unit: 'tokens', limit: 1000, applies_to: { metadata: { team: 'search' } }, models: ['llama-*'] },
      'of-another-model': { unit: 'requests', limit: 1000, applies_to: { tenant: true }, models: ['mistral'] },
    })) {
      const body = { name, period: 'month', ...members };
      const reply = await h.api('POST', '/v1/iam/budgets', { as: h.root.token, tenant, body });
      expect(outcome(reply)).toBe('201');
      budgets.set(text(reply.json, 'id'), name);
    }
    await report(
      tenant,
      event({ key_id: own, prompt_tokens: 50, completion_tokens: 0, requests: 2 }),
      event({ key_id: own, model: 'other', prompt_tokens: 7, completion_tokens: 0 }),
      event({ key_id: other, prompt_tokens: 1, completion_tokens: 0 }),
      event({ user_id: owner.id, prompt_tokens: 100, completion_tokens: 0 }),
      event({ model: 'mistral', prompt_tokens: 10, completion_tokens: 0 }),
    );
    const { rows: counters } = await h.db.knex.raw<{ rows: { period: string; spent: number }[] }>(
      `select period, spent from token_budgets where tenant_id = ? and starts_with(period, 'bud_')`,
      [tenant],
    );
    const month = new Date().toISOString().slice(0, 7);
    const found = counters.map(({ period, spent }) => {
      const [id = '', ...rest] = period.split(/(?=[/ ])/);
      return [[budgets.get(id), ...rest].join(''), spent];
    });
    expect(Object.fromEntries(found)).toEqual({
      [`of-tenant ${month}#0`]: 151_000,
      [`of-key ${month}#0`]: 57,
      [`of-user ${month}#0`]: 4,
      [`of-role/${owner.id} ${month}#0`]: 4,
      [`of-metadata ${month}#0`]: 50,
      [`of-another-model ${month}#0`]: 1,
    });
  });
});
