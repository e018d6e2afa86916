/** Simulations of decisions with proposed roles and policies: they equal later decisions, and change nothing. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Harness, type Json, outcome, type Person, type Reply, startHarness, text } from './harness.ts';

let h: Harness;
let boss: Person;
let ada: Person;
let ana: Person;
let stranger: Person;
beforeAll(async () => {
  h = await startHarness();
  for (const id of ['acme', 'globex'])
    await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id, name: id } });
  boss = await h.person('acme', ['tenant-admin']);
  await h.api('POST', '/v1/iam/roles', {
    as: boss.token,
    body: { name: 'small', permissions: ['chat:*'], resource_constraints: { models: ['phi-*'] } },
  });
  ada = await h.person('acme', ['developer']);
  ana = await h.person('acme', ['small']);
  stranger = await h.person('globex', ['developer']);
  const policy = { effect: 'deny', actions: ['agents:*'], resources: ['*'] };
  await h.api('POST', '/v1/iam/policies', { as: boss.token, body: { ...policy, name: 'no-agents' } });
  await h.api('POST', '/v1/iam/policies', {
    as: h.root.token,
    body: { ...policy, name: 'no-rag', actions: ['rag:*'], global: true },
  });
});
afterAll(async () => {
  await h.close();
});

const CHAT = { method: 'POST', path: '/v1/chat/completions', body: '{"model":"gpt"}' };
const AGENTS = { method: 'GET', path: '/v1/agents' };
const RAG = { method: 'GET', path: '/v1/rag/collections' };
const DENY = { name: 'new', effect: 'deny', actions: ['chat:*'], resources: ['*'] };
const NO_CHAT = [DENY];

const simulate = (body: object, as = boss.token) => h.api('POST', '/v1/iam/explain/simulate', { as, body });
const explain = (body: object, as = boss.token) => h.api('POST', '/v1/iam/explain', { as, body });

/** Returns the simulated and the current code. */
function told({ json }: Reply): string {
  const current = json['current'];
  const now = typeof current === 'object' && current !== null && 'code' in current ? current.code : undefined;
  return `${String(json['code'])}, now ${String(now)}`;
}

describe('a simulation', () => {
  test.each<[string, object, string]>([
    ['nothing', {}, 'allow, now allow'],
    ['a deny', { policies: NO_CHAT }, 'denied_by_policy, now allow'],
    ['a deny of other models', { policies: [{ ...DENY, resources: ['models/phi-*'] }] }, 'allow, now allow'],
    [
      'a deny at other times',
      { policies: [{ ...DENY, conditions: { time: { between: ['01:00', '02:00'] } } }], time: '2026-11-18T11:00:00Z' },
      'allow, now allow',
    ],
    ['a deny of another role', { policies: [{ ...DENY, attached_roles: ['small'] }] }, 'allow, now allow'],
    ['a deny that is disabled', { policies: [{ ...DENY, enabled: false }] }, 'allow, now allow'],
    [
      'the end of a deny, under its name',
      { ...AGENTS, policies: [{ ...DENY, name: 'no-agents', enabled: false }] },
      'allow, now denied_by_policy',
    ],
    [
      'less of a deny',
      { ...AGENTS, policies: [{ ...DENY, name: 'no-agents', actions: ['agents:write'] }] },
      'allow, now denied_by_policy',
    ],
  ])('of %s', async (_name, proposal, expected) => {
    expect(told(await simulate({ subject: ada.id, ...CHAT, ...proposal }))).toBe(expected);
  });

  test.each<[string, object, string]>([
    ['a wider role', { roles: [{ name: 'small', permissions: ['chat:*'] }] }, 'allow, now resource_not_permitted'],
    [
      'a narrower role',
      { body: '{"model":"phi-3"}', roles: [{ name: 'small', permissions: ['rag:*'] }] },
      'insufficient_permission, now allow',
    ],
    [
      'a role that is not held',
      { roles: [{ name: 'other', permissions: ['*'] }] },
      'resource_not_permitted, now resource_not_permitted',
    ],
    [
      'an allow for a role',
      { policies: [{ ...DENY, effect: 'allow', attached_roles: ['small'] }] },
      'allow, now resource_not_permitted',
    ],
    [
      'a role together with a policy that is attached to it',
      { roles: [{ name: 'other', permissions: [] }], policies: [{ ...DENY, attached_roles: ['other', 'small'] }] },
      'denied_by_policy, now resource_not_permitted',
    ],
  ])('of %s', async (_name, proposal, expected) => {
    expect(told(await simulate({ subject: ana.id, ...CHAT, ...proposal }))).toBe(expected);
  });

  test('explains as an explanation does once the proposal is made, and leaves everything as it was', async () => {
    const policies = [
      {
        ...DENY,
        name: 'made-later',
        conditions: { ip_address: { not_in: ['10.0.0.0/8'] } },
        attached_roles: ['made-too'],
      },
    ];
    const roles = [{ name: 'made-too', permissions: ['models:read'], resource_constraints: { models: ['a'] } }];
    const eve = await h.person('acme', ['developer']);
    await h.db.knex.raw(`insert into user_roles (user_id, role_name) values (?, 'made-too')`, [eve.id]);
    const asked = { subject: eve.id, ...CHAT, client_ip: '192.0.2.1', time: '2026-11-18T11:00:00Z' };
    const everything = async () => ({
      stored: [
        ...(await stored('policies')),
        ...(await stored('roles')),
        ...(await stored('policy_roles')),
        ...(await stored('changes')),
      ],
      audit: await h.audit(),
    });
    const before = await everything();
    const { current, ...simulated } = (await simulate({ ...asked, policies, roles })).json;
    expect(await everything()).toEqual(before);
    expect(current).toMatchObject({ decision: 'allow', status: 200, code: 'allow', policy: null });
    expect((await explain(asked)).json).toMatchObject({ code: 'allow' });

    for (const role of roles)
      expect(outcome(await h.api('POST', '/v1/iam/roles', { as: boss.token, body: role }))).toBe('201');
    for (const policy of policies)
      expect(outcome(await h.api('POST', '/v1/iam/policies', { as: boss.token, body: policy }))).toBe('201');
    expect(simulated).toEqual((await explain(asked)).json);
    expect(simulated).toMatchObject({ code: 'denied_by_policy', policy: 'made-later' });
  });

  async function stored(table: string): Promise<readonly Json[]> {
    return (await h.db.knex.raw<{ rows: Json[] }>(`select * from ${table} order by 1, 2`)).rows;
  }

  test('of a global policy is for platform administrators, in every tenant', async () => {
    const policies = [{ ...DENY, global: true, attached_roles: ['developer'] }];
    expect(outcome(await simulate({ subject: ada.id, ...CHAT, policies }))).toBe('403 escalation');
    expect(told(await simulate({ subject: ada.id, ...CHAT, policies }, h.root.token))).toBe(
      'denied_by_policy, now allow',
    );
    expect(told(await simulate({ subject: stranger.id, ...CHAT, policies }, h.root.token))).toBe(
      'denied_by_policy, now allow',
    );
    // A policy keeps its owner.
    const end = [{ ...DENY, name: 'no-rag', enabled: false }];
    expect(outcome(await simulate({ subject: ada.id, ...RAG, policies: end }))).toBe('403 escalation');
    expect(told(await simulate({ subject: ada.id, ...RAG, policies: end }, h.root.token))).toBe(
      'allow, now denied_by_policy',
    );
    const moved = await simulate(
      { subject: ada.id, ...AGENTS, policies: [{ ...DENY, name: 'no-agents', global: true }] },
      h.root.token,
    );
    expect(outcome(moved)).toBe('422 invalid_field');
    expect(moved.json['errors']).toMatchObject([{ path: '/policies/0/global' }]);
  });
});

describe('a proposal that is not valid', () => {
  test.each<[string, object, string]>([
    [
      'a condition',
      { policies: [DENY, { ...DENY, name: 'b', conditions: { time: { after: ['x'] } } }] },
      '/policies/1/conditions/time/after',
    ],
    [
      'a network',
      { policies: [{ ...DENY, conditions: { ip_address: { in: ['10.0.0.1/8'] } } }] },
      '/policies/0/conditions/ip_address/in/0',
    ],
    ['an action', { policies: [{ ...DENY, actions: ['cha*:read'] }] }, '/policies/0/actions/0'],
    ['a resource', { policies: [{ ...DENY, resources: ['x/y'] }] }, '/policies/0/resources/0'],
    ['a name', { policies: [{ ...DENY, name: 'No' }] }, '/policies/0/name'],
    ['a missing member', { policies: [{ name: 'x', effect: 'deny', actions: ['*'] }] }, '/policies/0/resources'],
    ['an unknown member', { policies: [{ ...DENY, priority: 1 }] }, '/policies/0/priority'],
    [
      'a role that is not there',
      { policies: [{ ...DENY, attached_roles: ['developer', 'nobody'] }] },
      '/policies/0/attached_roles/1',
    ],
    ["another tenant's role", { policies: [{ ...DENY, attached_roles: ['theirs'] }] }, '/policies/0/attached_roles/0'],
    [
      'everyone with roles',
      { policies: [{ ...DENY, applies_to: 'everyone', attached_roles: ['developer'] }] },
      '/policies/0/attached_roles',
    ],
    ['a name twice', { policies: [DENY, DENY] }, '/policies/1/name'],
    ['a permission', { roles: [{ name: 'r', permissions: ['chat'] }] }, '/roles/0/permissions/0'],
    [
      'a constraint',
      { roles: [{ name: 'r', permissions: [], resource_constraints: { models: [''] } }] },
      '/roles/0/resource_constraints/models/0',
    ],
    ['a built-in role', { roles: [{ name: 'developer', permissions: [] }] }, '/roles/0/name'],
    [
      'a role twice',
      {
        roles: [
          { name: 'r', permissions: [] },
          { name: 'r', permissions: [] },
        ],
      },
      '/roles/1/name',
    ],
    ['too much', { roles: Array.from({ length: 101 }, (_, i) => ({ name: `r${i}`, permissions: [] })) }, '/roles'],
  ])('%s is 422 at its path, also with an invalid credential or none', async (_name, proposal, path) => {
    for (const who of [{ subject: ada.id }, { credential: 'nonsense' }, {}]) {
      const reply = await simulate({ ...who, ...CHAT, ...proposal });
      expect(outcome(reply)).toBe('422 invalid_field');
      expect(reply.json['errors']).toMatchObject([{ path }]);
    }
  });
});

describe('a proposal', () => {
  const names = (bytes: number) =>
    Array.from({ length: Math.ceil(bytes / 200) }, (_, i) => `models/${'x'.repeat(180)}${i}`);
  const policyOf = (bytes: number) => ({ ...DENY, resources: names(bytes) });
  const roleOf = (bytes: number) => ({
    name: 'proposed',
    permissions: ['chat:*'],
    resource_constraints: { models: names(bytes) },
  });

  test('of more than 64 KiB is 422, and says so', async () => {
    const reply = await simulate({ ...CHAT, policies: [policyOf(40_000)], roles: [roleOf(40_000)] });
    expect([outcome(reply), reply.json['errors']]).toEqual([
      '422 invalid_field',
      [{ path: '/policies', message: 'Proposed policies and roles must be at most 64 KiB in total.' }],
    ]);
    const ofRoles = await simulate({ ...CHAT, roles: [roleOf(40_000), { ...roleOf(40_000), name: 'another' }] });
    expect([outcome(ofRoles), ofRoles.json['errors']]).toMatchObject(['422 invalid_field', [{ path: '/roles' }]]);
  });

  test('of less than that is accepted beside a body of 100 KiB', async () => {
    const body = JSON.stringify({ model: 'gpt', messages: [{ role: 'user', content: 'a'.repeat(100_000) }] });
    expect(
      outcome(
        await simulate({ subject: ada.id, ...CHAT, body, policies: [policyOf(20_000)], roles: [roleOf(20_000)] }),
      ),
    ).toBe('200');
  });
});

describe('access to simulations', () => {
  test('needs admin:policies, also for a simulation about the caller itself', async () => {
    const policies = NO_CHAT;
    expect(outcome(await explain({ subject: ada.id, ...CHAT }, ada.token))).toBe('200');
    expect(outcome(await simulate({ subject: ada.id, ...CHAT, policies }, ada.token))).toBe(
      '403 insufficient_permission',
    );
    expect(outcome(await simulate({ credential: ada.token, ...CHAT }, ada.token))).toBe('403 insufficient_permission');
    expect(told(await simulate({ subject: boss.id, ...CHAT, policies }))).toBe('denied_by_policy, now allow');
    expect(outcome(await simulate({ subject: boss.id, ...CHAT, policies }, ada.token))).toBe(
      '403 insufficient_permission',
    );
    expect(outcome(await simulate({ subject: stranger.id, ...CHAT, policies }))).toBe('404 not_found');
    expect(told(await simulate({ credential: stranger.token, ...CHAT, policies }))).toBe(
      'invalid_credential, now invalid_credential',
    );
    expect(told(await simulate({ subject: stranger.id, ...CHAT, policies }, h.root.token))).toBe(
      'denied_by_policy, now allow',
    );
    const made = await h.api('POST', '/v1/iam/api-keys', {
      as: boss.token,
      body: { description: 'k', scopes: ['admin:policies'], expires_in_days: 1 },
    });
    expect(told(await simulate({ subject: ada.id, ...CHAT, policies }, text(made.json, 'key')))).toBe(
      'denied_by_policy, now allow',
    );
  });
});
