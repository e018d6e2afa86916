/** Simulations of decisions with proposed roles and policies: they equal later decisions, and change nothing. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseTenantId } from '../../src/domain/ids.ts';
import { differenceRunner } from '../../src/iam/explain/difference.ts';
import { storeDecision } from '../support/recorded-decisions.ts';
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
    ['the removal of a deny', { ...AGENTS, remove: { policies: ['no-agents'] } }, 'allow, now denied_by_policy'],
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
      'the removal of a role',
      { body: '{"model":"phi-3"}', remove: { roles: ['small'] } },
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

describe('the difference of a change', () => {
  const LLAMA = { name: 'no-llama', effect: 'deny', actions: ['*'], resources: ['models/llama-*'] };
  const ask = (body: object, as = boss.token, tenant?: string) =>
    h.api('POST', '/v1/iam/explain/difference', { as, body, ...(tenant === undefined ? {} : { tenant }) });

  interface Shown {
    readonly principals: { readonly roles: readonly string[]; readonly users: number; readonly keys: number };
    readonly permission: string;
    readonly resources: object;
    readonly by: string;
    readonly witness: Json;
    readonly recent_requests: number;
  }
  const boxes = (reply: Reply, list: 'newly_allowed' | 'newly_denied'): readonly Shown[] => {
    const found = reply.json[list];
    if (!Array.isArray(found)) throw new Error(`${reply.status} ${reply.text}`);
    return found;
  };
  const both = (reply: Reply) => [...boxes(reply, 'newly_allowed'), ...boxes(reply, 'newly_denied')];

  /** Explains the witness under the rules and under the change, and expects different decisions. */
  async function expectDifferent({ witness }: Shown, change: object, allowedNow: boolean): Promise<void> {
    const { model: _named, ...request } = witness;
    const reply = await simulate({ ...request, ...change });
    const current = reply.json['current'];
    const now = typeof current === 'object' && current !== null && 'decision' in current ? current.decision : undefined;
    const decisions = allowedNow ? ['allow', 'deny'] : ['deny', 'allow'];
    expect([witness, now, reply.json['decision']]).toEqual([witness, ...decisions]);
  }

  test('names who loses what by a deny, in a tenant of which no allowed request was recorded', async () => {
    const made = await h.api('POST', '/v1/iam/api-keys', {
      as: boss.token,
      body: { description: 'k', scopes: ['chat:write'], expires_in_days: 1 },
    });
    const disabled = await h.api('POST', '/v1/iam/api-keys', {
      as: boss.token,
      body: { description: 'k', scopes: ['chat:write'], expires_in_days: 1 },
    });
    await h.api('POST', `/v1/iam/api-keys/${text(disabled.json, 'id')}/disable`, { as: boss.token });
    const book = (key: string, user: string, model: string, requests: number, daysAgo: number) =>
      h.db.query({
        text: `insert into usage_daily (tenant_id, day, model, key_id, user_id, requests)
          values ('acme', current_date - $1::int, $2, $3, $4, $5)`,
        values: [daysAgo, model, key, user, requests],
      });
    await book(text(made.json, 'id'), '', 'llama-3', 7000, 1);
    await book('', ada.id, 'llama-3', 400, 2);
    await book('', ada.id, 'phi-3', 90, 1);
    await book('', ada.id, 'llama-3', 5, 20);

    const reply = await ask({ policies: [LLAMA] });
    expect(reply.json).toMatchObject({
      unchanged: false,
      complete: true,
      newly_allowed: [],
      recent: { checked: 0, changed: 0, sampled: false },
    });
    const chats = boxes(reply, 'newly_denied').filter(({ permission }) => permission === 'chat:write');
    expect(chats).not.toEqual([]);
    for (const chat of chats) expect(chat).toMatchObject({ resources: { models: ['llama-*'] }, by: 'no-llama' });
    expect(chats.reduce((sum, { recent_requests }) => sum + recent_requests, 0)).toBe(7400);
    // The role small permits other models only.
    for (const { principals } of boxes(reply, 'newly_denied')) expect(principals.roles).not.toContain('small');
    const holders = await h.api('GET', '/v1/iam/explain/who-can?resource=models/llama-3&limit=200', { as: boss.token });
    const { users, keys } = holders.json;
    expect([users, keys]).toEqual([expect.any(Array), expect.any(Array)]);
    expect(reply.json['affected']).toEqual({ users: Array(users).flat().length, keys: Array(keys).flat().length });
  });

  test.each<[string, object]>([
    ['a deny', { policies: [LLAMA] }],
    [
      'a deny of an address block at some hours',
      {
        policies: [
          {
            ...LLAMA,
            conditions: { ip_address: { in: ['10.0.0.0/8'] }, weekly_hours: { in: ['Mon-Fri 18:00-20:00'] } },
          },
        ],
      },
    ],
    ['the end of a deny', { policies: [{ ...DENY, name: 'no-agents', enabled: false }] }],
    [
      'an allow for a role',
      {
        policies: [
          {
            name: 'more',
            effect: 'allow',
            actions: ['chat:*'],
            resources: ['models/gpt-*'],
            attached_roles: ['small'],
          },
        ],
      },
    ],
    [
      'a wider role beside a deny',
      {
        policies: [{ ...LLAMA, resources: ['models/phi-4'] }],
        roles: [{ name: 'small', permissions: ['chat:*', 'models:read'], resource_constraints: { models: ['p*'] } }],
      },
    ],
  ])('of %s has witnesses whose explanations differ with and without the change', async (_name, change) => {
    const reply = await ask(change);
    expect(reply.json).toMatchObject({ unchanged: false, complete: true });
    expect(both(reply)).not.toEqual([]);
    for (const box of boxes(reply, 'newly_allowed')) await expectDifferent(box, change, false);
    for (const box of boxes(reply, 'newly_denied')) await expectDifferent(box, change, true);
  });

  test('has a witness at a time before the key expires, and the key that expires last', async () => {
    const [as, tenant] = [h.root.token, 'brief'];
    await h.api('POST', '/v1/iam/tenants', { as, body: { id: tenant, name: tenant } });
    const makeKey = async (days: number) => {
      const body = { description: 'k', scopes: ['chat:write'], expires_in_days: days };
      return text((await h.api('POST', '/v1/iam/api-keys', { as, tenant, body })).json, 'id');
    };
    const day = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'][(new Date().getUTCDay() + 3) % 7];
    const change = { policies: [{ ...DENY, conditions: { day_of_week: { in: [day] } } }] };
    const subjects: unknown[] = [];
    const keys = [await makeKey(1)];
    for (let n = 0; n < 2; n++) {
      const reply = await h.api('POST', '/v1/iam/explain/difference', { as, tenant, body: change });
      const denied = boxes(reply, 'newly_denied');
      for (const { witness } of denied) {
        subjects.push(witness['subject']);
        const { model: _named, body, ...request } = witness;
        const asked = { ...request, ...(body === null ? {} : { body }), ...change };
        const { json } = await h.api('POST', '/v1/iam/explain/simulate', { as, tenant, body: asked });
        expect(json).toMatchObject({ code: 'denied_by_policy', current: { code: 'allow' } });
      }
      keys.push(await makeKey(9));
    }
    expect(subjects).toEqual([keys[0], keys[0], keys[1], keys[1]]);
  });

  test('of a removal is the opposite of that of its rules, and removes nothing', async () => {
    const reply = await ask({ remove: { policies: ['no-agents'], roles: ['small'] } });
    const allowed = boxes(reply, 'newly_allowed');
    expect(new Set(allowed.map(({ by }) => by))).toEqual(new Set(['no-agents']));
    expect(new Set(boxes(reply, 'newly_denied').map(({ by }) => by))).toEqual(new Set(['small']));
    for (const box of allowed)
      await expectDifferent(box, { policies: [{ ...DENY, name: 'no-agents', enabled: false }] }, false);
    expect((await explain({ subject: ada.id, ...AGENTS })).json['policy']).toBe('no-agents');
  });

  test('of the stored rules is empty, and of a permission of the management API is apart', async () => {
    const same = { name: 'no-agents', effect: 'deny', actions: ['agents:*'], resources: ['*'] };
    expect((await ask({ policies: [same] })).json).toMatchObject({ unchanged: true, complete: true });
    expect((await ask({})).json).toMatchObject({ unchanged: true, affected: { users: 0, keys: 0 } });
    const wider = { name: 'small', permissions: ['chat:*', 'admin:keys'], resource_constraints: { models: ['phi-*'] } };
    expect((await ask({ roles: [wider] })).json).toMatchObject({
      unchanged: true,
      newly_allowed: [],
      management: { unchanged: false, newly_allowed: [{ permission: 'admin:keys', by: 'small' }], newly_denied: [] },
    });
  });

  test('decides the recorded decisions of the tenant again: the enforced ones, or those of a trial', async () => {
    const recorded = (subject: Person, model: string, shadow = false) =>
      storeDecision(h.db, {
        tenant_id: 'acme',
        shadow,
        outcome: 'allow',
        code: 'allow',
        principal_type: 'user',
        principal_id: subject.id,
        method: 'POST',
        path: '/v1/chat/completions',
        route: 'POST /v1/chat/completions',
        permission: 'chat:write',
        resources: [`models/${model}`],
        sampled: true,
      });
    await recorded(ada, 'llama-3');
    await recorded(ada, 'gpt');
    await recorded(stranger, 'llama-3');
    for (let i = 0; i < 3; i++) await recorded(ada, 'llama-3', true);
    expect((await ask({ policies: [LLAMA] })).json['recent']).toEqual({ checked: 2, changed: 1, sampled: true });
    const path = '/v1/iam/explain/difference?shadow=true';
    const trial = await h.api('POST', path, { as: boss.token, body: { policies: [LLAMA] } });
    expect(trial.json['recent']).toEqual({ checked: 3, changed: 3, sampled: true });
    await h.db.query({ text: 'truncate recent_decisions' });
  });

  test('is of the rules that the caller may propose, and of the principals of its tenant', async () => {
    const global = { ...LLAMA, global: true };
    expect(outcome(await ask({ policies: [global] }))).toBe('403 escalation');
    expect(outcome(await ask({ remove: { policies: ['no-rag'] } }))).toBe('403 escalation');
    expect(outcome(await ask({ policies: [LLAMA] }, ada.token))).toBe('403 insufficient_permission');
    await h.api('POST', '/v1/iam/policies', { as: h.root.token, tenant: 'globex', body: { ...LLAMA, name: 'theirs' } });
    for (const name of ['theirs', 'nothing']) {
      const reply = await ask({ remove: { policies: [name] } });
      expect(reply.json['errors']).toEqual([{ path: '/remove/policies/0', message: 'This policy does not exist.' }]);
    }
    expect(outcome(await ask({ remove: { roles: ['developer'] } }))).toBe('422 invalid_field');
    const theirs = await ask({ policies: [global] }, h.root.token, 'globex');
    expect(theirs.json['affected']).toEqual({ users: 0, keys: 0 });
    await h.api('DELETE', '/v1/iam/policies/theirs', { as: h.root.token, tenant: 'globex' });
    const again = await ask({ policies: [global] }, h.root.token, 'globex');
    expect(again.json['affected']).toEqual({ users: 1, keys: 0 });
    for (const { witness } of boxes(again, 'newly_denied')) expect(witness['subject']).toBe(stranger.id);
  });

  test('is computed between other work of the process, of each tenant two at once and few in the queue', async () => {
    const runner = differenceRunner();
    const tenantOf = (id: string) => parseTenantId(id) ?? never();
    let steps = 0;
    let isOver = false;
    function* endless() {
      while (!isOver) {
        steps++;
        yield;
      }
      return {};
    }
    const first = runner.run(tenantOf('acme'), (finish) => finish(endless()));
    // The event loop turns while the computation has not ended.
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
    expect(steps).toBeGreaterThan(0);
    const others = Array.from({ length: 30 }, () =>
      runner.run(tenantOf('acme'), async () => ({})).then(() => 'ran', String),
    );
    const another = runner.run(tenantOf('globex'), async () => 'ran');
    expect(await another).toBe('ran');
    isOver = true;
    const ended = await Promise.all(others);
    expect(ended).toContain('ran');
    expect(ended.some((one) => one.includes('Too many differences'))).toBe(true);
    await first;
  });

  function never(): never {
    throw new Error('not the id of a tenant');
  }
});
