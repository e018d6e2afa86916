import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { compilePolicies, compileTenant } from '../../src/decision/compile.ts';
import { MANAGEMENT_PERMISSIONS } from '../../src/decision/management.ts';
import { parseTenantId } from '../../src/domain/ids.ts';
import { describedEndpoints } from '../../src/iam/api-routes.ts';
import type { Caller } from '../../src/iam/caller/caller.ts';
import { tenantFindings } from '../../src/iam/permissions/findings.ts';
import { policyNamed, TABLE, userWith } from '../decision/rule-changes.ts';
import { builtinRoles } from '../support/builtin-roles.ts';
import { must } from '../support/world.ts';
import { type Harness, type Json, outcome, type Person, type Reply, rows, startHarness, text } from './harness.ts';

let h: Harness;
let boss: Person;
beforeAll(async () => {
  h = await startHarness({
    settings: { POSTERN_ROUTES: '[{"method":"POST","path":"/v1/shop/orders","permission":"shop:order"}]' },
  });
  await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id: 'acme', name: 'acme' } });
  boss = await h.person('acme', ['tenant-admin', 'admin']);
});
afterAll(async () => {
  await h.close();
});

const call = (method: string, path: string, body?: object): Promise<Reply> =>
  h.api(method, path, { as: boss.token, body });
const noticesOf = ({ json }: Reply | { json: Json }): readonly Json[] => {
  const { notices } = json;
  return Array.isArray(notices) ? notices : [];
};
const listed = async (path: string, name: string, value: string): Promise<Json> => {
  const found = rows(await call('GET', path)).find((row) => row[name] === value);
  if (found === undefined) throw new Error(`${value} is not listed`);
  return found;
};

const UNNEEDED = { kind: 'unneeded_pattern', pattern: 'chat:wirte', nearest: 'chat:write' };

describe('a budget of money', () => {
  const BUDGET = { unit: 'money', limit: '10.00', period: 'month', applies_to: { metadata: { of: 'notices' } } };
  const made = async (name: string, members: object): Promise<string> => {
    const reply = await call('POST', '/v1/iam/budgets', { name, ...BUDGET, ...members });
    expect(outcome(reply)).toBe('201');
    return `/v1/iam/budgets/${text(reply.json, 'id')}`;
  };

  test('says which of its models have no price, alone and in the list', async () => {
    const some = await made('some', { models: ['priced-1', 'free', 'unknown-*'] });
    const tokens = await made('tokens', { unit: 'tokens', limit: 5, models: ['free'] });
    expect(noticesOf(await call('GET', some))).toMatchObject([{ path: '/models/0' }, { path: '/models/1' }]);

    const prices = [{ models: 'priced-*', input: '1.00', output: '2.00', per: 1_000_000 }];
    expect(outcome(await call('PUT', '/v1/iam/prices', { prices }))).toBe('200');
    const free = {
      ...{ kind: 'no_price', path: '/models/1', pattern: 'free', nearest: null },
      message: 'free has no price, so its requests cost 0.',
    };
    expect(noticesOf(await call('GET', some))).toEqual([free]);
    expect(noticesOf({ json: await listed('/v1/iam/budgets', 'name', 'some') })).toEqual([free]);
    expect(noticesOf(await call('GET', tokens))).toEqual([]);
  });
});

describe('a pattern that no route and no endpoint needs', () => {
  test('is accepted in a role, with a notice in every answer that shows the role', async () => {
    const path = '/v1/iam/roles/mistyped';
    const made = await call('POST', '/v1/iam/roles', { name: 'mistyped', permissions: ['chat:read', 'chat:wirte'] });
    expect(outcome(made)).toBe('201');
    expect(noticesOf(made)).toEqual([
      { ...UNNEEDED, path: '/permissions/1', message: expect.stringMatching(/chat:wirte.*nearest.*chat:write/) },
    ]);
    expect(made.json['notice']).toMatch(/chat:wirte.*chat:write/);
    expect(noticesOf(await call('GET', path))).toMatchObject([UNNEEDED]);
    expect(noticesOf({ json: await listed('/v1/iam/roles', 'name', 'mistyped') })).toMatchObject([UNNEEDED]);
    expect(noticesOf(await call('PUT', path, { description: 'as it was' }))).toMatchObject([UNNEEDED]);
    const mended = await call('PUT', path, { permissions: ['chat:write'] });
    expect(noticesOf(mended)).toEqual([]);
    expect(Object.keys(mended.json)).not.toEqual(expect.arrayContaining([expect.stringContaining('notice')]));
  });

  test('is accepted in a policy, beside the notice that the policy applies to no principal', async () => {
    const path = '/v1/iam/policies/mistyped';
    const policy = { name: 'mistyped', effect: 'allow', actions: ['embedding:*'], resources: ['*'] };
    const made = await call('POST', '/v1/iam/policies', policy);
    const expected = [
      { kind: 'binds_no_one', path: '/attached_roles', pattern: null, nearest: null },
      { kind: 'unneeded_pattern', path: '/actions/0', pattern: 'embedding:*', nearest: 'embeddings:*' },
    ];
    expect(outcome(made)).toBe('201');
    for (const reply of [made, await call('GET', path), await call('PUT', path, { description: 'd' })]) {
      expect(noticesOf(reply)).toMatchObject(expected);
      expect(reply.json['notice']).toMatch(/applies to no principal.*embeddings:\*/);
    }
    expect(noticesOf({ json: await listed('/v1/iam/policies', 'name', 'mistyped') })).toMatchObject(expected);
    await call('PUT', '/v1/iam/roles/developer/policies/mistyped');
    expect(noticesOf({ json: await listed('/v1/iam/roles/developer/policies', 'name', 'mistyped') })).toMatchObject(
      expected.slice(1),
    );
  });

  test("is accepted in a key's scopes, and the answer that shows the secret has the notice too", async () => {
    const made = await call('POST', '/v1/iam/api-keys', {
      description: 'k',
      scopes: ['chat:wirte'],
      expires_in_days: 1,
    });
    expect(outcome(made)).toBe('201');
    const path = `/v1/iam/api-keys/${text(made.json, 'id')}`;
    expect(made.json['key']).toMatch(/^psk_/);
    for (const reply of [made, await call('GET', path), await call('POST', `${path}/rotate`, {})]) {
      expect(noticesOf(reply)).toMatchObject([{ ...UNNEEDED, path: '/scopes/0' }]);
    }
    expect(noticesOf({ json: await listed('/v1/iam/api-keys', 'id', text(made.json, 'id')) })).toHaveLength(1);
    expect(noticesOf(await call('PUT', path, { scopes: ['chat:write'] }))).toEqual([]);
  });

  test.each([
    ['a role', 'POST', '/v1/iam/roles', { name: 'strict', permissions: ['chat:wirte'] }, '/permissions/0'],
    [
      'a policy',
      'POST',
      '/v1/iam/policies',
      { name: 'strict', effect: 'deny', actions: ['chat:read', 'chat:wirte'], resources: ['*'] },
      '/actions/1',
    ],
    [
      'a key',
      'POST',
      '/v1/iam/api-keys',
      { description: 'strict', scopes: ['chat:wirte'], expires_in_days: 1 },
      '/scopes/0',
    ],
  ])('with strict=true is refused in %s, and nothing is written', async (_, method, path, body, pointer) => {
    const reply = await call(method, `${path}?strict=true`, body);
    expect(outcome(reply)).toBe('422 invalid_field');
    expect(reply.json['errors']).toEqual([{ path: pointer, message: expect.stringContaining('chat:write') }]);
    expect(JSON.stringify(rows(await call('GET', path)))).not.toContain('strict');
    expect(outcome(await call(method, `${path}?strict=false`, body))).toBe('201');
  });

  test('with strict=true is refused in a change, but only if the request names it', async () => {
    const key = await call('POST', '/v1/iam/api-keys', {
      description: 'k',
      scopes: ['chat:wirte'],
      expires_in_days: 1,
    });
    for (const [path, member] of [
      ['/v1/iam/roles/strict', 'permissions'],
      ['/v1/iam/policies/strict', 'actions'],
      [`/v1/iam/api-keys/${text(key.json, 'id')}`, 'scopes'],
    ] as const) {
      expect(outcome(await call('PUT', `${path}?strict=true`, { description: 'd' }))).toBe('200');
      expect(outcome(await call('PUT', `${path}?strict=true`, { [member]: ['chat:raed'] }))).toBe('422 invalid_field');
      expect(outcome(await call('PATCH', `${path}?strict=true`, { [member]: ['chat:raed'] }))).toBe(
        '422 invalid_field',
      );
      expect(outcome(await call('PUT', `${path}?strict=true`, { [member]: ['chat:read'] }))).toBe('200');
      expect(noticesOf(await call('PATCH', path, { [member]: ['chat:raed'] }))).toMatchObject([
        { nearest: 'chat:read' },
      ]);
    }
  });

  test('strict=true rejects a text that is no pattern with another message', async () => {
    const reply = await call('POST', '/v1/iam/roles?strict=true', { name: 'bad', permissions: ['cha*:read'] });
    expect(outcome(reply)).toBe('422 invalid_field');
    expect(reply.text).not.toContain('nearest');
  });

  test.each(['*', '*:*', '*:read', 'chat:*', 'admin:*', 'usage:write', 'shop:order', 'shop:*', '*:order'])(
    'is not %s, which a route or an endpoint needs',
    async (pattern) => {
      const reply = await call('PUT', '/v1/iam/roles/strict?strict=true', { permissions: [pattern] });
      expect(noticesOf(reply)).toEqual([]);
    },
  );

  test('gives at most 20 notices for one resource', async () => {
    const permissions = Array.from({ length: 900 }, (_, i) => `nothing${i}:needs`);
    expect(noticesOf(await call('PUT', '/v1/iam/roles/strict', { permissions }))).toHaveLength(20);
  });
});

test('rules that do nothing have a notice in lists and alone, for callers that may read policies', async () => {
  const deny = (name: string, resources: readonly string[]) =>
    call('POST', '/v1/iam/policies', { name, effect: 'deny', actions: ['rerank:write'], resources });
  for (const [name, ...resources] of [
    ['idle-twin', 'models/idle-*'],
    ['idle-twin-again', 'models/idle-*'],
    ['idle-within', 'models/idle-1'],
  ] as const)
    expect(outcome(await deny(name, resources))).toBe('201');
  const role = { name: 'idle', permissions: ['rerank:write'], resource_constraints: { models: ['idle-7'] } };
  await call('POST', '/v1/iam/roles', role);

  const expected = { 'idle-twin': [], 'idle-twin-again': ['duplicate'], 'idle-within': ['no_effect'] };
  for (const [name, kinds] of Object.entries(expected)) {
    const path = `/v1/iam/policies/${name}`;
    for (const reply of [await call('GET', path), { json: await listed('/v1/iam/policies', 'name', name) }])
      expect(noticesOf(reply).map(({ kind }) => kind)).toEqual(kinds);
  }
  const shadowed = { kind: 'shadowed', path: '', message: expect.stringContaining('the policy idle-twin') };
  expect(noticesOf({ json: await listed('/v1/iam/roles', 'name', 'idle') })).toMatchObject([shadowed]);
  const found = rows(await call('GET', '/v1/iam/policies?notices=true&q=idle-')).map(({ name }) => name);
  expect(found).toEqual(['idle-twin-again', 'idle-within']);

  // The message names policies, which this caller may not read.
  const clerk = await h.person('acme', ['tenant-admin']);
  await call('POST', '/v1/iam/policies', {
    name: 'no-policies',
    effect: 'deny',
    actions: ['admin:policies'],
    resources: ['*'],
    attached_roles: ['tenant-admin'],
  });
  expect(noticesOf(await h.api('GET', '/v1/iam/roles/idle', { as: clerk.token }))).toEqual([]);
  for (const name of [...Object.keys(expected), 'no-policies']) await call('DELETE', `/v1/iam/policies/${name}`);
});

test('the tag of a role with notices works in If-Match and If-None-Match', async () => {
  const path = '/v1/iam/roles/tagged';
  await call('POST', '/v1/iam/roles', { name: 'tagged', permissions: ['chat:wirte'] });
  const etag = String((await call('GET', path)).headers['etag']);
  const put = (headers: Record<string, string>, description: string) =>
    h.api('PUT', path, { as: boss.token, headers, body: { description } });
  expect((await h.api('GET', path, { as: boss.token, headers: { 'if-none-match': etag } })).status).toBe(304);
  expect(outcome(await put({ 'if-none-match': etag }, 'a'))).toBe('412 precondition_failed');
  expect(outcome(await put({ 'if-match': etag }, 'b'))).toBe('200');
  expect(outcome(await put({ 'if-match': etag }, 'c'))).toBe('412 precondition_failed');
});

test('notices are in no audit row, because they are made for each answer', async () => {
  const written = JSON.stringify([...(await h.audit('role.update')), ...(await h.audit('policy.create'))]);
  expect(written).toContain('mistyped');
  expect(written).not.toContain('notice');
});

describe('GET /v1/iam/permissions', () => {
  const all = async (query = ''): Promise<readonly Json[]> =>
    rows(await call('GET', `/v1/iam/permissions?limit=200${query}`));
  const named = (found: readonly Json[]) => found.map((row) => row['permission']);

  test('lists every permission of the route table, configured routes included, and of management', async () => {
    const found = await all();
    const needed = h.platformRoutes.routes.flatMap(({ permissions }) =>
      permissions.map((permission) => permission.text),
    );
    expect(named(found)).toEqual(
      [...new Set([...needed, ...MANAGEMENT_PERMISSIONS])].toSorted((a, b) => (a < b ? -1 : 1)),
    );
    expect(found.find((row) => row['permission'] === 'shop:order')).toEqual({
      permission: 'shop:order',
      kind: 'platform',
      routes: [{ method: 'POST', path: '/v1/shop/orders' }],
      route_count: 1,
    });
    expect(found.find((row) => row['permission'] === 'rag:query')?.['routes']).toContainEqual({
      method: 'POST',
      path: '/v1/rag/search',
    });
  });

  test('names for each management permission the endpoints that need it', async () => {
    const found = await all();
    for (const permission of MANAGEMENT_PERMISSIONS) {
      const endpoints = describedEndpoints()
        .filter(({ needs }) => needs?.includes(`\`${permission}\``))
        .map(({ method, path }) => ({ method, path: path.replace(/:(\w+)/g, '{$1}') }));
      expect(endpoints.length).toBeGreaterThan(0);
      expect(found.find((row) => row['permission'] === permission)).toMatchObject({
        kind: 'management',
        routes: endpoints,
      });
    }
  });

  test('shows what a pattern covers', async () => {
    expect(named(await all('&pattern=chat:*'))).toEqual(['chat:read', 'chat:write']);
    expect(named(await all('&pattern=*:order'))).toEqual(['shop:order']);
    expect(named(await all('&pattern=chat:wirte'))).toEqual([]);
    expect(named(await all('&pattern=*'))).toEqual(named(await all()));
    expect(outcome(await call('GET', '/v1/iam/permissions?pattern=cha*:read'))).toBe('400 invalid_parameter');
  });

  test('comes in pages, and a cursor belongs to its pattern', async () => {
    const first = await call('GET', '/v1/iam/permissions?limit=2&pattern=admin:*');
    expect(named(rows(first))).toEqual(['admin:budgets', 'admin:issuers']);
    const cursor = text(first.json, 'next_cursor');
    const second = await call('GET', `/v1/iam/permissions?limit=2&pattern=admin:*&cursor=${cursor}`);
    expect(named(rows(second))).toEqual(['admin:keys', 'admin:policies']);
    expect(outcome(await call('GET', `/v1/iam/permissions?limit=2&cursor=${cursor}`))).toBe('400 invalid_parameter');
  });

  test('is open to every credential, and closed without one', async () => {
    const nobody = await h.person('acme', []);
    expect((await h.api('GET', '/v1/iam/permissions', { as: nobody.token })).status).toBe(200);
    expect((await h.api('GET', '/v1/iam/permissions')).status).toBe(401);
  });
});

describe('a list with notices=true', () => {
  test.each([
    [
      'roles',
      { permissions: ['chat:wirte'] },
      `insert into roles (tenant_id, name, permissions) select :tenant, name, '{chat:write}'`,
    ],
    [
      'policies',
      { effect: 'allow', actions: ['chat:wirte'], resources: ['*'], applies_to: 'everyone' },
      `insert into policies (tenant_id, name, effect, actions, resources, applies_to)
       select :tenant, name, 'deny', '{chat:write}', array['models/' || name], 'everyone'`,
    ],
  ])(
    'has the %s with a notice among more rules than one batch, over pages, with their number',
    async (kind, wrong, right) => {
      const tenant = `many-${kind}`;
      await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id: tenant, name: kind } });
      const admin = await h.person(tenant, ['admin']);
      const path = `/v1/iam/${kind}`;
      const make = (name: string, body: object) => h.api('POST', path, { as: admin.token, body: { name, ...body } });
      await h.db.knex.raw(`${right} from (select 'n-' || i as name from generate_series(100, 309) i) n`, { tenant });
      for (const name of ['a-first', 'n-200-between', 'z-last']) expect(outcome(await make(name, wrong))).toBe('201');
      const names: unknown[] = [];
      let cursor = '';
      for (let more = true; more; ) {
        const reply = await h.api('GET', `${path}?notices=true&limit=1&count=true${cursor}`, { as: admin.token });
        expect(reply.json['total']).toBe(3);
        names.push(...rows(reply).map((row) => row['name']));
        more = reply.json['has_more'] === true;
        cursor = `&cursor=${String(reply.json['next_cursor'])}`;
      }
      expect(names).toEqual(['a-first', 'n-200-between', 'z-last']);
      const all = await h.api('GET', `${path}?notices=true&limit=200&count=true&tenant_id=*`, { as: h.root.token });
      expect([all.json['has_more'], all.json['total']]).toEqual([false, rows(all).length]);
    },
  );
});

describe('the overview', () => {
  const overview = async (as: string) => (await h.api('GET', '/v1/iam/overview', { as })).json;

  test('has the notices of rules and keys, and the latest changes with names', async () => {
    await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id: 'seen', name: 'seen' } });
    const admin = await h.person('seen', ['tenant-admin', 'admin']);
    await h.api('POST', '/v1/iam/roles', { as: admin.token, body: { name: 'mistyped', permissions: ['chat:wirte'] } });
    const body = { name: 'Shop', description: 'The shop', scopes: ['chat:wirte'], expires_in_days: 3 };
    const made = await h.api('POST', '/v1/iam/api-keys', { as: admin.token, body });
    const seen = await overview(admin.token);
    expect(Object(seen['notices']).data).toMatchObject([
      { kind: 'role', id: 'mistyped', notice: UNNEEDED },
      { kind: 'key', id: made.json['id'], name: 'Shop', notice: UNNEEDED },
    ]);
    const changes = seen['changes'];
    expect(Array.isArray(changes) ? changes.slice(0, 2) : changes).toMatchObject([
      { action: 'api_key.create', actor: { id: admin.id, name: expect.any(String) }, target: { name: 'Shop' } },
      { action: 'role.create', target: { id: 'mistyped' } },
    ]);
    expect(seen).toMatchObject({
      monthly_tokens: { used: 0 },
      denials: [],
      users: { locked: [], email_conflicts: [], suspended: [] },
      expiring_keys: { total: 1, data: [{ id: made.json['id'] }] },
    });
  });

  test('has only the parts that the caller may read', async () => {
    const auditor = await h.person('seen', ['auditor']);
    const developer = await h.person('seen', ['developer']);
    const parts = async (as: string) => Object.keys(await overview(as)).toSorted((a, b) => (a < b ? -1 : 1));
    expect(await parts(auditor.token)).toEqual([
      'changes',
      'denials',
      'expiring_keys',
      'monthly_tokens',
      'notices',
      'unpriced_models',
    ]);
    expect(await parts(developer.token)).toEqual(['expiring_keys', 'notices']);
    for (const { token } of [auditor, developer]) {
      expect(await overview(token)).toMatchObject({
        notices: { data: [], has_more: false },
        expiring_keys: { total: 0, data: [] },
      });
    }
  });

  test('has no keys if a policy denies the caller admin:keys', async () => {
    await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id: 'denied', name: 'denied' } });
    const developer = await h.person('denied', ['developer']);
    const body = { description: 'd', scopes: ['chat:*'], expires_in_days: 1 };
    await h.api('POST', '/v1/iam/api-keys', { as: developer.token, body });
    expect(await overview(developer.token)).toMatchObject({ expiring_keys: { total: 1 } });
    const policy = { name: 'no-keys', effect: 'deny', actions: ['admin:keys'], resources: ['*'] };
    await h.api('POST', '/v1/iam/policies', { as: h.root.token, tenant: 'denied', body: policy });
    expect(await overview(developer.token)).toMatchObject({ expiring_keys: { total: 0, data: [] } });
  });
});

test('a tenant whose rules change without a pause does not keep the notices of another tenant waiting', async () => {
  // Each says the same as the next one.
  const policies = Array.from({ length: 300 }, (_, i) =>
    policyNamed(`p${i}`, { conditions: { ip_address: { in: [`10.0.${i >> 1}.0/24`] } } }),
  );
  const global = compilePolicies([]);
  let computed = 0;
  const compute = async (tenant: string): Promise<boolean> => {
    const id = must(parseTenantId(tenant), tenant);
    const effective = compileTenant({ id, status: 'active', settings: {}, quotas: {}, roles: [], policies });
    const snapshot = { own: effective, effective, global, builtinRoles };
    const caller = {
      principal: { ...userWith(['admin'], 1), tenantId: id },
      snapshot,
      tenant: id,
      address: undefined,
      nowMs: 0,
    };
    const findings = await tenantFindings({ routes: TABLE }, caller as unknown as Caller);
    const isComputed = policies.some(({ name }) => findings.about('policy', id, name).length > 0);
    if (isComputed) computed++;
    return isComputed;
  };
  const busy = Array.from({ length: 20 }, () => compute('busy'));
  expect(await compute('other')).toBe(true);
  expect(computed).toBeLessThanOrEqual(3);
  await Promise.all(busy);
  expect(computed).toBeGreaterThan(3);
});
