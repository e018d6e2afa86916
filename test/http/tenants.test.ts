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
  });
});
