import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { column, type Harness, outcome, type Person, startHarness } from './harness.ts';

let h: Harness;
let boss: Person;
beforeAll(async () => {
  h = await startHarness();
  for (const id of ['acme', 'globex'])
    await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id, name: id } });
  boss = await h.person('acme', ['tenant-admin']);
});
afterAll(async () => {
  await h.close();
});

const POLICIES = '/v1/iam/policies';
let n = 0;
let name = '';
beforeEach(() => {
  name = `policy-${++n}`;
});

const RAG = { effect: 'deny', actions: ['rag:*'], resources: ['*'] };
const create = (body: object = {}, as = boss.token, query = '') =>
  h.api('POST', `${POLICIES}${query}`, { as, body: { name, ...RAG, ...body } });
const put = (body: object, as = boss.token) => h.api('PUT', `${POLICIES}/${name}`, { as, body });

describe('policies', () => {
  test('are made, shown and changed member by member', async () => {
    const conditions = {
      ip_address: { not_in: ['10.0.0.0/8'] },
      time: { between: ['22:00', '06:00'] },
      timezone: 'Europe/Berlin',
    };
    const made = await create({ description: 'Nights', conditions });
    expect([outcome(made), made.headers['location']]).toEqual(['201', `${POLICIES}/${name}`]);
    expect(made.json).toEqual({
      name,
      description: 'Nights',
      ...RAG,
      conditions,
      applies_to: 'everyone',
      attached_roles: [],
      global: false,
      mode: 'enforce',
      enabled: true,
      tenant_id: 'acme',
      created_at: expect.any(String),
      updated_at: expect.any(String),
    });
    expect((await put({ enabled: false })).json).toMatchObject({ enabled: false, conditions, description: 'Nights' });
    expect((await put({ conditions: {} })).json).toMatchObject({ enabled: false, conditions: {} });
    expect(outcome(await h.api('DELETE', `${POLICIES}/${name}`, { as: boss.token }))).toBe('204');
    expect(outcome(await h.api('GET', `${POLICIES}/${name}`, { as: boss.token }))).toBe('404 not_found');
  });

  test.each([
    ['half a wildcard', { actions: ['r*g:read'] }, '/actions/0'],
    ['no action', { actions: [] }, '/actions'],
    ['a resource of an unknown kind', { resources: ['planets/*'] }, '/resources/0'],
    ['a kind without a slash', { resources: ['models*'] }, '/resources/0'],
    ['an unknown condition', { conditions: { moon: { in: ['full'] } } }, '/conditions/moon'],
    ['an unknown operator', { conditions: { time: { after: ['10:00', '11:00'] } } }, '/conditions/time/after'],
    ['an empty operator object', { conditions: { ip_address: {} } }, '/conditions/ip_address'],
    [
      'host bits in a CIDR block',
      { conditions: { ip_address: { in: ['10.0.0.1/8'] } } },
      '/conditions/ip_address/in/0',
    ],
    ['equal ends', { conditions: { time: { between: ['10:00', '10:00'] } } }, '/conditions/time/between'],
    ['an unknown zone', { conditions: { timezone: 'Mars/Base' } }, '/conditions/timezone'],
    ['everyone together with roles', { applies_to: 'everyone', attached_roles: ['developer'] }, '/attached_roles'],
    ['an unknown role', { attached_roles: ['wizard'] }, '/attached_roles/0'],
    ['an unknown effect', { effect: 'maybe' }, '/effect'],
  ])('%s is rejected with the path of its member', async (_name, body, path) => {
    const reply = await create(body);
    expect([outcome(reply), reply.json['errors']]).toMatchObject(['422 invalid_field', [{ path }]]);
  });
});

describe('the principals of a policy', () => {
  test.each([
    ['a deny: everyone', {}, 'everyone', []],
    ['an allow: roles, none yet', { effect: 'allow', actions: ['chat:read'] }, 'roles', []],
    ['named roles', { attached_roles: ['developer', 'analyst', 'developer'] }, 'roles', ['analyst', 'developer']],
    ['an empty list of roles', { attached_roles: [] }, 'roles', []],
    ['an allow for everyone', { effect: 'allow', actions: ['chat:read'], applies_to: 'everyone' }, 'everyone', []],
  ])('%s', async (_name, body, appliesTo, attached) => {
    expect((await create(body)).json).toMatchObject({ applies_to: appliesTo, attached_roles: attached });
  });

  test('a policy that applies to no principal has a notice', async () => {
    expect((await create({ attached_roles: [] })).json['notice']).toMatch(/applies to no principal/);
    expect((await put({ attached_roles: ['developer'] })).json['notice']).toBeUndefined();
  });

  test('naming roles sets applies_to to roles, and only PUT sets it back to everyone, which detaches', async () => {
    await create();
    expect((await put({ attached_roles: ['developer'] })).json).toMatchObject({
      applies_to: 'roles',
      attached_roles: ['developer'],
    });
    expect((await put({ description: 'x' })).json).toMatchObject({
      applies_to: 'roles',
      attached_roles: ['developer'],
    });
    expect((await put({ applies_to: 'everyone' })).json).toMatchObject({ applies_to: 'everyone', attached_roles: [] });
  });

  test('attaching sets applies_to to roles, also for a policy that applied to everyone', async () => {
    await create();
    await h.api('PUT', `/v1/iam/roles/developer/policies/${name}`, { as: boss.token });
    expect((await h.api('GET', `${POLICIES}/${name}`, { as: boss.token })).json).toMatchObject({
      applies_to: 'roles',
      attached_roles: ['developer'],
    });
  });
});

describe('global policies', () => {
  test('are written, changed, attached and deleted by platform administrators only', async () => {
    expect(outcome(await create({ global: true }))).toBe('403 escalation');
    const made = await create({ global: true }, h.root.token);
    expect(made.json).toMatchObject({ global: true, tenant_id: null });
    expect(outcome(await put({ description: 'mine' }))).toBe('403 escalation');
    expect(outcome(await h.api('PUT', `/v1/iam/roles/developer/policies/${name}`, { as: boss.token }))).toBe(
      '403 escalation',
    );
    expect(outcome(await h.api('DELETE', `/v1/iam/roles/developer/policies/${name}`, { as: boss.token }))).toBe(
      '403 escalation',
    );
    expect(outcome(await h.api('DELETE', `${POLICIES}/${name}`, { as: boss.token }))).toBe('403 escalation');
    expect(outcome(await put({ description: 'ours' }, h.root.token))).toBe('200');
  });

  test('are listed in every tenant, and attach to built-in roles only', async () => {
    await create({ global: true }, h.root.token);
    expect(column(await h.api('GET', `${POLICIES}?limit=200`, { as: boss.token }), 'name')).toContain(name);
    await h.api('POST', '/v1/iam/roles', { as: h.root.token, body: { name: `custom-${name}`, permissions: [] } });
    const custom = await h.api('PUT', `/v1/iam/roles/custom-${name}/policies/${name}`, { as: h.root.token });
    expect(outcome(custom)).toBe('422 invalid_field');
    expect(outcome(await put({ attached_roles: [`custom-${name}`] }, h.root.token))).toBe('422 invalid_field');
    expect(outcome(await h.api('PUT', `/v1/iam/roles/developer/policies/${name}`, { as: h.root.token }))).toBe('204');
  });

  test('a policy does not become global, or stop being so', async () => {
    await create();
    expect(outcome(await put({ global: true }))).toBe('403 escalation');
    expect(
      outcome(await h.api('PUT', `${POLICIES}/${name}`, { as: h.root.token, tenant: 'acme', body: { global: true } })),
    ).toBe('422 invalid_field');
    expect(outcome(await put({ global: false }))).toBe('200');
  });

  test('a name is one policy only across a tenant and the global ones, also when both are made at once', async () => {
    await create();
    expect(outcome(await create())).toBe('409 already_exists');
    expect(outcome(await create({ global: true }, h.root.token))).toBe('409 already_exists');
    const there = { as: h.root.token, tenant: 'globex', body: { name, ...RAG } };
    expect(outcome(await h.api('POST', POLICIES, there))).toBe('201');
    name = `race-${n}`;
    const both = await Promise.all([create(), create({ global: true }, h.root.token)]);
    expect(both.map(outcome).toSorted()).toEqual(['201', '409 already_exists']);
  });
});

describe('the guard against lock-out', () => {
  const trap = { actions: ['admin:*'] };

  test('a policy that would deny its author admin:policies now is refused without force', async () => {
    expect(outcome(await create(trap))).toBe('409 would_lock_out');
    expect(outcome(await create({ ...trap, enabled: false }))).toBe('201');
    expect(outcome(await put({ enabled: true }))).toBe('409 would_lock_out');
    expect(outcome(await put({ enabled: true, attached_roles: ['auditor'] }))).toBe('200');
    const attach = `/v1/iam/roles/tenant-admin/policies/${name}`;
    expect(outcome(await h.api('PUT', attach, { as: boss.token }))).toBe('409 would_lock_out');
  });

  test('a policy that would not deny it now is accepted without force', async () => {
    const elsewhere = { ...trap, conditions: { ip_address: { in: ['192.0.2.0/24'] } } };
    expect(outcome(await create(elsewhere))).toBe('201');
    expect(
      outcome(await create({ ...trap, name: `${name}-here`, conditions: { ip_address: { in: ['127.0.0.0/8'] } } })),
    ).toBe('409 would_lock_out');
  });

  test('with force the policy is written, applies to its author at once, and a platform administrator can undo it', async () => {
    expect(outcome(await create(trap, boss.token, '?force=true'))).toBe('201');
    const denied = await h.api('GET', POLICIES, { as: boss.token });
    expect([outcome(denied), denied.json['policy']]).toEqual(['403 denied_by_policy', name]);
    const path = `${POLICIES}/${name}`;
    expect(outcome(await h.api('DELETE', path, { as: h.root.token, tenant: 'acme' }))).toBe('204');
    expect(outcome(await h.api('GET', POLICIES, { as: boss.token }))).toBe('200');
  });

  test('tenant policies never apply to platform administrators, global ones do', async () => {
    expect(outcome(await create(trap, h.root.token))).toBe('201');
    expect(outcome(await h.api('GET', POLICIES, { as: h.root.token }))).toBe('200');
    expect(outcome(await create({ ...trap, name: `${name}-all`, global: true }, h.root.token))).toBe(
      '409 would_lock_out',
    );
  });
});

describe('a deny policy and the own account of a user', () => {
  const OWN = [
    ['GET', '/v1/auth/sessions'],
    ['DELETE', '/v1/auth/sessions'],
    ['GET', '/v1/auth/sessions/ses_00000000000000000000000000'],
    ['DELETE', '/v1/auth/sessions/ses_00000000000000000000000000'],
    [
      'POST',
      '/v1/auth/password',
      { old_password: 'not the password', new_password: 'another one that is long enough' },
    ],
  ] as const;
  const answers = async (as: string): Promise<readonly string[]> => {
    const replies = await Promise.all(OWN.map(async ([method, path, body]) => h.api(method, path, { as, body })));
    return replies.map(outcome);
  };
  const OPEN = ['200', '204', '404 not_found', '404 not_found', '401 invalid_credential'];

  test('a deny on * applies to the own sessions and the own password, and a deny on single permissions does not', async () => {
    const ada = await h.person('acme', ['auditor']);
    const deny = { effect: 'deny', applies_to: 'roles', attached_roles: ['auditor'] };
    expect(outcome(await create({ ...deny, actions: ['admin:*', '*:read'] }))).toBe('201');
    expect(await answers(ada.token)).toEqual(OPEN);
    expect(outcome(await put({ actions: ['*'] }))).toBe('200');
    expect(await answers(ada.token)).toEqual(OWN.map(() => '403 denied_by_policy'));
    expect(outcome(await h.api('GET', '/v1/auth/me', { as: ada.token }))).toBe('200');
    expect(outcome(await put({ enabled: false }))).toBe('200');
    expect(await answers(ada.token)).toEqual(OPEN);
  });
});
