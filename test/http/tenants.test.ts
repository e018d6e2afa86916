import { beforeEach, describe, expect, test } from 'vitest';
import { column, type Harness, it, type Json, outcome, type Person, text, unique } from './harness.ts';

let h: Harness;
it.beforeAll(({ harness }) => {
  h = harness;
});

const TENANTS = '/v1/iam/tenants';
let id = '';
beforeEach(() => {
  id = unique('tenant');
});

const create = (body: object = {}) =>
  h.api('POST', TENANTS, { as: h.root.token, body: { id, name: 'A Tenant', ...body } });
const root = (method: string, path: string, body?: object) =>
  h.api(method, path, { as: h.root.token, ...(body === undefined ? {} : { body }) });

const rates = (rules: readonly object[]) => ({ settings: { rate_limits: rules } });

describe('tenants', () => {
  test('are made and shown', async () => {
    const settings = {
      default_model: 'llama-3',
      max_tokens_per_request: 0,
      rate_limit_rpm: 600,
      timezone: 'Europe/Berlin',
      require_stream_usage: true,
    };
    const reply = await create({ settings, quotas: { max_users: 5, monthly_tokens: null } });
    expect([outcome(reply), reply.headers['location']]).toEqual(['201', `${TENANTS}/${id}`]);
    expect(reply.json).toEqual({
      id,
      name: 'A Tenant',
      status: 'active',
      settings,
      quotas: { max_users: 5 },
      metadata: {},
      created_at: expect.any(String),
      updated_at: expect.any(String),
    });
    expect((await root('GET', `${TENANTS}/${id}`)).json).toEqual(reply.json);
    expect(column(await root('GET', `${TENANTS}?limit=200`), 'id')).toContain(id);
  });

  test.each([
    ['an id in capitals', { id: 'Acme' }, '/id'],
    ['an unknown setting', { settings: { colour: 'red' } }, '/settings/colour'],
    ['no zone at all', { settings: { timezone: '' } }, '/settings/timezone'],
    ['an unknown zone', { settings: { timezone: 'Mars/Base' } }, '/settings/timezone'],
    ['a negative limit', { settings: { rate_limit_rpm: -1 } }, '/settings/rate_limit_rpm'],
    ['half a user', { quotas: { max_users: 1.5 } }, '/quotas/max_users'],
    ['a requirement as text', { settings: { require_stream_usage: 'yes' } }, '/settings/require_stream_usage'],
    ['a limit as text', { quotas: { max_users: '5' } }, '/quotas/max_users'],
    ['a rule without a limit', rates([{ models: ['*'] }]), '/settings/rate_limits/0'],
    ['a rule without models', rates([{ parallel: 1 }]), '/settings/rate_limits/0/models'],
    ['an unknown limit', rates([{ models: ['*'], requests_per_hour: 1 }]), '/settings/rate_limits/0/requests_per_hour'],
    ['half a place', rates([{ models: ['*'], parallel: 0.5 }]), '/settings/rate_limits/0/parallel'],
    ['an empty glob', rates([{ models: ['a', ''], parallel: 1 }]), '/settings/rate_limits/0/models/1'],
    [
      'one glob with two limits',
      rates([
        { models: ['a'], parallel: 1 },
        { models: ['b', 'a'], tokens_per_minute: 1, parallel: 1 },
      ]),
      '/settings/rate_limits/1/models/1',
    ],
    [
      'more rules than 32',
      rates(Array.from({ length: 33 }, (_, i) => ({ models: [`m-${i}`], parallel: 1 }))),
      '/settings/rate_limits',
    ],
  ])('%s is rejected with the path of its member', async (_name, body, path) => {
    const reply = await create(body);
    expect([outcome(reply), reply.json['errors']]).toMatchObject(['422 invalid_field', [{ path }]]);
  });

  test('settings and quotas merge one level, null removes', async () => {
    await create({ settings: { default_model: 'a', rate_limit_rpm: 1 }, quotas: { max_users: 5, max_collections: 2 } });
    const path = `${TENANTS}/${id}`;
    const put = async (body: object): Promise<Json> => (await root('PUT', path, body)).json;
    expect(await put({ settings: { default_model: 'b' } })).toMatchObject({
      settings: { default_model: 'b', rate_limit_rpm: 1 },
    });
    expect((await put({ settings: { rate_limit_rpm: null }, quotas: { max_users: null } }))['settings']).toEqual({
      default_model: 'b',
    });
    expect(await put({ name: 'Other' })).toMatchObject({ name: 'Other', quotas: { max_collections: 2 } });
    const rules = [{ models: ['a', 'b-*'], requests_per_minute: 5, parallel: 0 }];
    expect(await put({ settings: { rate_limits: rules } })).toMatchObject({ settings: { rate_limits: rules } });
    expect(await put({ settings: { rate_limits: [] } })).toMatchObject({ settings: { default_model: 'b' } });
    expect((await root('GET', path)).json['settings']).toEqual({ default_model: 'b' });
  });

  test.each(['PUT', 'PATCH'])('%s with null for settings or quotas removes all of their members', async (method) => {
    await create({ settings: { default_model: 'a', rate_limit_rpm: 1 }, quotas: { max_users: 5 } });
    const change = (body: object) => root(method, `${TENANTS}/${id}`, body);
    expect((await change({ settings: null })).json).toMatchObject({ settings: {}, quotas: { max_users: 5 } });
    expect((await change({ quotas: null })).json).toMatchObject({ settings: {}, quotas: {} });
  });
});

describe('the management of tenants', () => {
  test('is for platform administrators only; a tenant administrator, or a role or key with *, reads its own', async () => {
    await create();
    await h.api('POST', '/v1/iam/roles', {
      as: h.root.token,
      tenant: id,
      body: { name: 'superuser', permissions: ['*'] },
    });
    const god = await h.person(id, ['superuser']);
    const boss = await h.person(id, ['tenant-admin']);
    const body = { description: 'k', scopes: ['*'], expires_in_days: 1 };
    const key = text((await h.api('POST', '/v1/iam/api-keys', { as: h.root.token, body })).json, 'key');
    for (const as of [god.token, boss.token, key]) {
      const list = await h.api('GET', TENANTS, { as });
      expect(outcome(list)).toBe('403 insufficient_permission');
      expect(list.headers['www-authenticate']).toContain('scope="admin:tenants"');
      expect(outcome(await h.api('POST', TENANTS, { as, body: { id: `${id}-x`, name: 'x' } }))).toBe(
        '403 insufficient_permission',
      );
      expect(outcome(await h.api('PUT', `${TENANTS}/${id}`, { as, body: {} }))).toBe('403 insufficient_permission');
    }
    expect(outcome(await h.api('GET', `${TENANTS}/${id}`, { as: boss.token }))).toBe('200');
    expect(outcome(await h.api('GET', `${TENANTS}/default`, { as: boss.token }))).toBe('404 not_found');
    const nobody = await h.person(id, []);
    expect(outcome(await h.api('GET', `${TENANTS}/${id}`, { as: nobody.token }))).toBe('403 insufficient_permission');
  });
});

describe('suspension', () => {
  test('rejects all users of the tenant until it is lifted, except platform administrators', async () => {
    await create();
    const boss: Person = await h.person(id, ['tenant-admin']);
    const users = (as: string, tenant?: string) =>
      h.api('GET', '/v1/iam/users', { as, ...(tenant === undefined ? {} : { tenant }) });
    expect((await root('POST', `${TENANTS}/${id}/suspend`)).json).toMatchObject({ id, status: 'suspended' });
    expect(outcome(await users(boss.token))).toBe('403 tenant_suspended');
    expect(outcome(await users(h.root.token, id))).toBe('200');
    expect((await root('POST', `${TENANTS}/${id}/activate`)).json).toMatchObject({ status: 'active' });
    expect(outcome(await users(boss.token))).toBe('200');
  });

  test('the first tenant is neither suspended nor deleted', async () => {
    expect(outcome(await root('POST', `${TENANTS}/default/suspend`))).toBe('409 in_use');
    expect(outcome(await root('DELETE', `${TENANTS}/default`))).toBe('409 in_use');
  });

  test('a platform administrator suspends its own tenant only with force', async () => {
    await create();
    const lodger = await h.person(id, ['admin']);
    const path = `${TENANTS}/${id}/suspend`;
    expect(outcome(await h.api('POST', path, { as: lodger.token }))).toBe('409 would_lock_out');
    expect(outcome(await h.api('POST', `${path}?force=true`, { as: lodger.token }))).toBe('200');
    expect(outcome(await h.api('GET', TENANTS, { as: lodger.token }))).toBe('403 tenant_suspended');
  });
});

describe('deletion', () => {
  test('needs a tenant without users and active keys, and the id is never used again', async () => {
    await create();
    const path = `${TENANTS}/${id}`;
    const someone = await h.person(id, []);
    const issued = await h.api('POST', '/v1/iam/api-keys', {
      as: h.root.token,
      tenant: id,
      body: { description: 'k', scopes: ['chat:read'], expires_in_days: 1 },
    });
    expect(outcome(await root('DELETE', path))).toBe('409 in_use');
    await h.api('DELETE', `/v1/iam/users/${someone.id}`, { as: h.root.token, tenant: id });
    expect(outcome(await root('DELETE', path))).toBe('409 in_use');
    await h.api('DELETE', `/v1/iam/api-keys/${text(issued.json, 'id')}`, { as: h.root.token, tenant: id });
    expect(outcome(await root('DELETE', path))).toBe('204');
    expect(outcome(await root('GET', path))).toBe('404 not_found');
    expect(outcome(await root('PUT', path, { name: 'Back' }))).toBe('404 not_found');
    expect(outcome(await create())).toBe('409 already_exists');
    expect(outcome(await h.api('GET', '/v1/iam/users', { as: h.root.token, tenant: id }))).toBe('403 tenant_mismatch');
    for (const method of ['GET', 'DELETE'])
      expect(outcome(await root(method, `/v1/iam/api-keys/${text(issued.json, 'id')}`))).toBe('404 not_found');
  });

  test('deletes the budgets and webhooks of the tenant, so no list of all tenants shows what no request reaches', async () => {
    await create();
    const of = { as: h.root.token, tenant: id };
    const budget = { name: 'b', unit: 'tokens', limit: 5, period: 'month', applies_to: { tenant: true } };
    const webhook = { url: 'https://events.example/', events: ['key.revoked'] };
    for (const [path, body] of [
      ['budgets', budget],
      ['webhooks', webhook],
    ] as const)
      expect(outcome(await h.api('POST', `/v1/iam/${path}`, { ...of, body }))).toBe('201');
    const tenantsIn = async (path: string) =>
      column(await root('GET', `/v1/iam/${path}?tenant_id=*&limit=200`), 'tenant_id');
    for (const path of ['budgets', 'webhooks']) expect(await tenantsIn(path)).toContain(id);
    expect(outcome(await root('DELETE', `${TENANTS}/${id}`))).toBe('204');
    for (const path of ['budgets', 'webhooks']) expect(await tenantsIn(path)).not.toContain(id);
  });
});

test('the ended keys of a deleted tenant are in no list of all tenants', async () => {
  await create();
  const of = { as: h.root.token, tenant: id };
  const body = { description: id, name: id, scopes: ['chat:read'], expires_in_days: 1 };
  const made = await h.api('POST', '/v1/iam/api-keys', { ...of, body });
  expect(outcome(await h.api('DELETE', `/v1/iam/api-keys/${text(made.json, 'id')}`, of))).toBe('204');
  const queries = ['', 'status=revoked', `q=${id}&sort=last_used_at`, `prefix=${made.json['prefix']}`];
  const tenantsIn = async (query: string) =>
    column(await root('GET', `/v1/iam/api-keys?tenant_id=*&limit=200&${query}`), 'tenant_id');
  const count = async () => (await root('GET', `/v1/iam/api-keys?tenant_id=*&count=true&q=${id}`)).json['total'];
  for (const query of queries) expect(await tenantsIn(query), query).toContain(id);
  expect(await count()).toBe(1);
  expect(outcome(await root('DELETE', `${TENANTS}/${id}`))).toBe('204');
  for (const query of queries) expect(await tenantsIn(query), query).not.toContain(id);
  expect(await count()).toBe(0);
});

describe('the list by a number', () => {
  const MARK = unique('sorted');
  const names = ['small', 'large', 'without-quota', 'fast', 'quiet'].map((name) => `${MARK}-${name}`);
  const [small = '', large = '', without = '', fast = '', quiet = ''] = names;

  it.beforeAll(async ({ harness }) => {
    const quotas: Readonly<Record<string, number>> = { [small]: 100, [large]: 1_000_000, [fast]: 1_000_000_000 };
    const timezone: Readonly<Record<string, string>> = { [large]: 'Pacific/Kiritimati', [small]: 'Pacific/Niue' };
    for (const tenant of names) {
      const settings = timezone[tenant] === undefined ? {} : { timezone: timezone[tenant] };
      const body = { id: tenant, name: tenant, settings, quotas: { monthly_tokens: quotas[tenant] ?? null } };
      await harness.api('POST', TENANTS, { as: harness.root.token, body });
    }
    const { knex } = harness.db;
    const today = (zone: string) => new Date().toLocaleDateString('sv', { timeZone: zone });
    const use = async (tenant: string, requests: number, tokens: number) => {
      const day = today(timezone[tenant] ?? 'UTC');
      const entry = { tenant_id: tenant, day, period: day.slice(0, 7), model: '', key_id: '', user_id: '', requests };
      const sums = { prompt_tokens: tokens, completion_tokens: 0, cached_tokens: 0, total_tokens: tokens };
      await knex.raw(
        'select metering_book(array(select e from jsonb_populate_recordset(cast(null as metering_entry), cast(? as jsonb)) e))',
        [JSON.stringify([{ n: 1, ...entry, ...sums, estimated: false, books: true }])],
      );
    };
    await use(small, 5, 85);
    await use(large, 3, 900);
    await use(without, 8, 700);
    await use(fast, 1, 999_999_000);
    const denied = async (tenant: string, code: string, decisions: number, hours: number) =>
      knex.raw(
        `insert into decision_counts (tenant_id, minute, code, route, decisions)
         values (:tenant, date_trunc('minute', now()) - make_interval(hours => :hours), :code, '', :decisions)`,
        { tenant, code, decisions, hours },
      );
    await denied(large, 'denied_by_policy', 4, 1);
    await denied(large, 'allow', 1000, 1);
    await denied(small, 'no_route', 9, 2);
    await denied(fast, 'no_route', 500, 30);
  });

  const listed = async (query: string) => column(await root('GET', `${TENANTS}?q=${MARK}&${query}`), 'id');

  test.each([
    ['tokens', [quiet, small, without, large, fast]],
    ['-tokens', [fast, large, without, small, quiet]],
    ['requests', [quiet, fast, large, small, without]],
    ['-denied', [small, large, without, quiet, fast].toSorted((a, b) => orderOfDenials(a, b))],
    ['-share', [fast, small, large, without, quiet].toSorted((a, b) => orderOfShares(a, b))],
    ['id', names.toSorted((a, b) => (a < b ? -1 : 1))],
    ['-id', names.toSorted((a, b) => (a < b ? 1 : -1))],
  ])('sort=%s orders all tenants, over pages too', async (sort, expected) => {
    expect(await listed(`sort=${sort}`)).toEqual(expected);
    const paged: unknown[] = [];
    let cursor = '';
    for (let more = true; more; ) {
      const reply = await root('GET', `${TENANTS}?q=${MARK}&sort=${sort}&limit=2${cursor}`);
      paged.push(...column(reply, 'id'));
      more = reply.json['has_more'] === true;
      cursor = `&cursor=${String(reply.json['next_cursor'])}`;
    }
    expect(paged).toEqual(expected);
  });

  /** The most denied of the last 24 hours first; then, like all ties of a descending order, the last id first. */
  function orderOfDenials(a: string, b: string): number {
    const denials: Readonly<Record<string, number>> = { [small]: 9, [large]: 4 };
    return (denials[b] ?? 0) - (denials[a] ?? 0) || (a < b ? 1 : -1);
  }

  /** Tenants without a quota last. */
  function orderOfShares(a: string, b: string): number {
    const shares: Readonly<Record<string, number>> = { [small]: 0.85, [large]: 0.0009, [fast]: 0.999_999 };
    return (shares[b] ?? -1) - (shares[a] ?? -1) || (a < b ? 1 : -1);
  }

  test('a cursor belongs to its order', async () => {
    const cursor = String((await root('GET', `${TENANTS}?q=${MARK}&sort=-tokens&limit=1`)).json['next_cursor']);
    expect(outcome(await root('GET', `${TENANTS}?q=${MARK}&sort=-tokens&cursor=${cursor}`))).toBe('200');
    expect(outcome(await root('GET', `${TENANTS}?q=${MARK}&sort=tokens&cursor=${cursor}`))).toBe(
      '400 invalid_parameter',
    );
    expect(outcome(await root('GET', `${TENANTS}?q=${MARK}&cursor=${cursor}`))).toBe('400 invalid_parameter');
  });

  test('near_limit=true lists the tenants that have spent most of their tokens, and counts them', async () => {
    const reply = await root('GET', `${TENANTS}?q=${MARK}&near_limit=true&sort=-share&count=true`);
    expect([column(reply, 'id'), reply.json['total']]).toEqual([[fast, small], 2]);
  });

  test('include=limits shows the limits of each tenant as the tenant itself does, and its activity', async () => {
    const reply = await root('GET', `${TENANTS}?q=${MARK}&include=limits`);
    const data = reply.json['data'] as readonly Json[];
    expect(data).toHaveLength(5);
    for (const tenant of data) {
      const { rate_limit_rpm: _, ...alone } = (await root('GET', `${TENANTS}/${String(tenant['id'])}/limits`)).json;
      expect(tenant['limits']).toMatchObject({
        ...alone,
        monthly_tokens: { ...Object(alone['monthly_tokens']), runs_out_at: expect.toSatisfy(() => true) },
      });
    }
    const activity = Object.fromEntries(data.map((tenant) => [tenant['id'], tenant['activity']]));
    expect(activity).toEqual({
      [small]: { requests: 5, denied: 9 },
      [large]: { requests: 3, denied: 4 },
      [without]: { requests: 8, denied: 0 },
      [fast]: { requests: 1, denied: 0 },
      [quiet]: { requests: 0, denied: 0 },
    });
  });
});
