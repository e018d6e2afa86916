/** A caller gives only permissions that it has, and does not act on a user with more permissions. */

import { beforeEach, describe, expect, test } from 'vitest';
import { type Harness, it, outcome, type Person, text, unique } from './harness.ts';

const ACME = unique('acme');

let h: Harness;
/** Holds all of admin in acme, and chat:* under models llama-*, but nothing else. */
let clerk: Person;
/** A tenant administrator of acme. */
let boss: Person;
it.beforeAll(async ({ harness }) => {
  h = harness;
  await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id: ACME, name: 'Acme' } });
  boss = await h.person(ACME, ['tenant-admin']);
  const role = (name: string, permissions: string[], constraints: object = {}) =>
    h.api('POST', '/v1/iam/roles', {
      as: h.root.token,
      tenant: ACME,
      body: { name, permissions, resource_constraints: constraints },
    });
  await role('clerk', ['admin:*']);
  await role('llama', ['chat:*'], { models: ['llama-*'] });
  await role('superuser', ['*']);
  await role('reader', ['chat:read'], { models: ['llama-3'] });
  clerk = await h.person(ACME, ['clerk', 'llama']);
});

let n = 0;
let name = '';
beforeEach(() => {
  name = `thing-${++n}`;
});

const as = (person: Person, method: string, path: string, body?: object) =>
  h.api(method, path, { as: person.token, ...(body === undefined ? {} : { body }) });
const keyBody = (scopes: string[], rest: object = {}) => ({ description: name, scopes, expires_in_days: 1, ...rest });

test('the rejection names the missing permission and leaves an audit row of its own', async () => {
  const reply = await as(clerk, 'POST', '/v1/iam/roles', { name, permissions: ['chat:read', 'rag:read'] });
  expect([outcome(reply), reply.json['detail']]).toEqual([
    '403 escalation',
    'You cannot grant permissions that you do not have: chat:read.',
  ]);
  expect(await h.audit('role.create')).toContainEqual(
    expect.objectContaining({
      result: 'refused',
      actor_id: clerk.id,
      target_id: name,
      after: expect.objectContaining({ code: 'escalation' }),
    }),
  );
});

describe('making and changing roles', () => {
  test.each([
    ['what is held', ['admin:users'], {}, '201'],
    ['what is held, under the same constraint', ['chat:read'], { models: ['llama-*'] }, '201'],
    ['what is held, under a narrower constraint', ['chat:*'], { models: ['llama-3', 'llama-4-*'] }, '201'],
    ['under a wider constraint', ['chat:read'], { models: ['*'] }, '403 escalation'],
    ['under a constraint on another kind', ['chat:read'], { collections: ['hr'] }, '403 escalation'],
    ['a wider pattern', ['*:read'], { models: ['llama-3'] }, '403 escalation'],
    ['everything', ['*'], {}, '403 escalation'],
    ['nothing', [], {}, '201'],
  ])('%s', async (_name, permissions, constraints, expected) => {
    const reply = await as(clerk, 'POST', '/v1/iam/roles', { name, permissions, resource_constraints: constraints });
    expect(outcome(reply)).toBe(expected);
  });

  test('only the added permissions of a change count', async () => {
    await as(boss, 'POST', '/v1/iam/roles', { name, permissions: ['rag:*', 'agents:*'] });
    const put = async (body: object) => outcome(await as(clerk, 'PUT', `/v1/iam/roles/${name}`, body));
    expect(await put({ description: 'new' })).toBe('200');
    expect(await put({ permissions: ['rag:read'] })).toBe('200');
    expect(await put({ resource_constraints: { collections: ['hr'] } })).toBe('200');
    expect(await put({ resource_constraints: {} })).toBe('403 escalation');
    expect(await put({ permissions: ['rag:read', 'admin:users'] })).toBe('200');
    expect(await put({ permissions: ['rag:read', 'models:read'] })).toBe('403 escalation');
  });
});

describe('assigning roles', () => {
  test.each([
    ['reader', '200'],
    ['llama', '200'],
    ['developer', '403 escalation'],
    ['superuser', '403 escalation'],
    ['admin', '403 escalation'],
  ])('%s', async (role, expected) => {
    const someone = await h.person(ACME, []);
    expect(outcome(await as(clerk, 'PUT', `/v1/iam/users/${someone.id}`, { roles: [role] }))).toBe(expected);
    const fresh = await as(clerk, 'POST', '/v1/iam/users', { email: `${name}@example.test`, name, roles: [role] });
    expect(outcome(fresh)).toBe(expected === '200' ? '201' : expected);
  });

  test('only platform administrators give admin: a tenant administrator or a custom role with * does not', async () => {
    const someone = await h.person(ACME, []);
    const god = await h.person(ACME, ['superuser']);
    for (const giver of [boss, god]) {
      expect(outcome(await as(giver, 'PUT', `/v1/iam/users/${someone.id}`, { roles: ['admin'] }))).toBe(
        '403 escalation',
      );
    }
    expect(
      outcome(
        await h.api('PUT', `/v1/iam/users/${someone.id}`, {
          as: h.root.token,
          tenant: ACME,
          body: { roles: ['admin'] },
        }),
      ),
    ).toBe('200');
  });

  test('allow policies attached to a role count, conditional ones too', async () => {
    await as(clerk, 'POST', '/v1/iam/roles', { name, permissions: [] });
    const conditions = { ip_address: { in: ['192.0.2.0/24'] } };
    const body = { name, effect: 'allow', actions: ['rag:*'], resources: ['*'], conditions, attached_roles: [name] };
    expect(outcome(await as(boss, 'POST', '/v1/iam/policies', body))).toBe('201');
    const someone = await h.person(ACME, []);
    const give = async () => outcome(await as(clerk, 'PUT', `/v1/iam/users/${someone.id}`, { roles: [name] }));
    expect(await give()).toBe('403 escalation');
    await as(boss, 'PUT', `/v1/iam/policies/${name}`, { enabled: false });
    expect(await give()).toBe('200');
  });

  test('a user cannot assign a role to itself', async () => {
    expect(
      outcome(await as(clerk, 'PUT', `/v1/iam/users/${clerk.id}`, { roles: ['clerk', 'llama', 'developer'] })),
    ).toBe('403 escalation');
    expect(outcome(await as(clerk, 'PUT', `/v1/iam/users/${clerk.id}`, { department: 'Office' }))).toBe('200');
  });
});

describe('policies', () => {
  const allow = (actions: string[], rest: object = {}) => ({
    name,
    effect: 'allow',
    actions,
    resources: ['*'],
    ...rest,
  });

  test('writing or attaching an allow needs what it allows, a deny nothing', async () => {
    expect(outcome(await as(clerk, 'POST', '/v1/iam/policies', allow(['rag:read'])))).toBe('403 escalation');
    expect(outcome(await as(clerk, 'POST', '/v1/iam/policies', allow(['chat:read'])))).toBe('403 escalation');
    expect(
      outcome(await as(clerk, 'POST', '/v1/iam/policies', allow(['chat:read'], { resources: ['models/llama-3'] }))),
    ).toBe('201');
    expect(outcome(await as(boss, 'POST', '/v1/iam/policies', { ...allow(['rag:read']), name: `${name}-rag` }))).toBe(
      '201',
    );
    const attach = `/v1/iam/roles/reader/policies/${name}-rag`;
    expect(outcome(await as(clerk, 'PUT', attach))).toBe('403 escalation');
    expect(outcome(await as(boss, 'PUT', attach))).toBe('204');
    expect(outcome(await as(clerk, 'PUT', `/v1/iam/policies/${name}-rag`, { applies_to: 'everyone' }))).toBe(
      '403 escalation',
    );
    expect(outcome(await as(clerk, 'PUT', `/v1/iam/policies/${name}-rag`, { description: 'fine' }))).toBe('200');
    expect(outcome(await as(clerk, 'DELETE', attach))).toBe('204');
    const deny = {
      name: `${name}-no`,
      effect: 'deny',
      actions: ['rag:*'],
      resources: ['*'],
      attached_roles: ['auditor'],
    };
    expect(outcome(await as(clerk, 'POST', '/v1/iam/policies', deny))).toBe('201');
    expect(outcome(await as(clerk, 'PUT', `/v1/iam/policies/${name}-no`, { effect: 'allow' }))).toBe('403 escalation');
    expect(outcome(await as(clerk, 'DELETE', `/v1/iam/policies/${name}-no`))).toBe('204');
  });

  test('a further condition on an allow needs nothing that it allows, and the end of one needs all', async () => {
    const put = async (conditions: object) =>
      outcome(await as(clerk, 'PUT', `/v1/iam/policies/${name}`, { conditions }));
    const office = { ip_address: { in: ['10.0.0.0/8'] } };
    const work = { day_of_week: { not_in: ['Sun'] }, timezone: 'Europe/Berlin' };
    expect(outcome(await as(boss, 'POST', '/v1/iam/policies', allow(['rag:*'], { attached_roles: ['reader'] })))).toBe(
      '201',
    );
    expect(await put(office)).toBe('200');
    expect(await put({ ...office, ...work })).toBe('200');
    expect(await put({ ...office, ...work, timezone: 'Asia/Tokyo' })).toBe('403 escalation');
    expect(await put({ ip_address: { in: ['0.0.0.0/0'] }, ...work })).toBe('403 escalation');
    expect(await put(work)).toBe('403 escalation');
    expect(await put({})).toBe('403 escalation');
    expect(outcome(await as(clerk, 'DELETE', `/v1/iam/policies/${name}`))).toBe('204');
  });

  test('a report-only allow is written like one in force, and gives nothing that its enforcement would not check again', async () => {
    const report = { mode: 'report', attached_roles: ['reader'] };
    const put = async (who: Person, body: object) => outcome(await as(who, 'PUT', `/v1/iam/policies/${name}`, body));
    expect(outcome(await as(clerk, 'POST', '/v1/iam/policies', allow(['rag:read'], report)))).toBe('403 escalation');
    expect(outcome(await as(boss, 'POST', '/v1/iam/policies', allow(['rag:read'], report)))).toBe('201');
    expect(await put(clerk, { mode: 'enforce' })).toBe('403 escalation');
    expect(await put(clerk, { description: 'fine' })).toBe('200');
    expect(await put(clerk, { actions: ['rag:read', 'rag:query'] })).toBe('403 escalation');
    expect(await put(clerk, { enabled: false })).toBe('200');
    expect(await put(clerk, { enabled: true })).toBe('403 escalation');
    expect(await put(clerk, { mode: 'enforce' })).toBe('200');
    expect(await put(clerk, { enabled: true })).toBe('403 escalation');

    // The policy gives the role nothing until it is in force.
    const someone = await h.person(ACME, []);
    const give = async (roles: string[]) => outcome(await as(clerk, 'PUT', `/v1/iam/users/${someone.id}`, { roles }));
    expect(await put(boss, { mode: 'report', enabled: true })).toBe('200');
    expect(await give(['reader'])).toBe('200');
    expect(await give([])).toBe('200');
    expect(await put(boss, { mode: 'enforce' })).toBe('200');
    expect(await give(['reader'])).toBe('403 escalation');
    expect(outcome(await as(boss, 'DELETE', `/v1/iam/policies/${name}`))).toBe('204');
  });

  test('permissions of an unconditional allow policy can be granted, those of a conditional one cannot', async () => {
    const body = allow(['finetuning:*'], { attached_roles: ['clerk'] });
    await as(boss, 'POST', '/v1/iam/policies', {
      ...body,
      conditions: { day_of_week: { in: ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'] } },
    });
    const give = async (role: string) =>
      outcome(await as(clerk, 'POST', '/v1/iam/roles', { name: role, permissions: ['finetuning:read'] }));
    expect(await give(`${name}-a`)).toBe('403 escalation');
    await as(boss, 'PUT', `/v1/iam/policies/${name}`, { conditions: {} });
    expect(await give(`${name}-b`)).toBe('201');
    await as(boss, 'DELETE', `/v1/iam/policies/${name}`);
  });
});

describe('acting on users', () => {
  const acts = (id: string): [string, string, object?][] => [
    ['PUT', `/v1/iam/users/${id}`, { name: 'Renamed' }],
    ['POST', `/v1/iam/users/${id}/password-reset`],
    ['DELETE', `/v1/iam/users/${id}/sessions`],
    ['POST', `/v1/iam/users/${id}/deactivate`],
    ['POST', `/v1/iam/users/${id}/activate`],
    ['DELETE', `/v1/iam/users/${id}`],
  ];

  test.each([['developer'], ['tenant-admin'], ['superuser'], ['admin']])(
    'a caller does not act on a user with more permissions: %s',
    async (role) => {
      const stronger = await h.person(ACME, [role]);
      for (const [method, path, body] of acts(stronger.id))
        expect(outcome(await as(clerk, method, path, body))).toBe('403 escalation');
    },
  );

  test('a tenant administrator does not act on a platform administrator of its tenant', async () => {
    const lodger = await h.person(ACME, ['admin']);
    for (const [method, path, body] of acts(lodger.id))
      expect(outcome(await as(boss, method, path, body))).toBe('403 escalation');
  });

  test('a caller may act on a user with equal or fewer permissions', async () => {
    const weaker = await h.person(ACME, ['reader']);
    const outcomes = [];
    for (const [method, path, body] of acts(weaker.id)) outcomes.push(outcome(await as(clerk, method, path, body)));
    expect(outcomes).toEqual(['200', '200', '200', '200', '200', '204']);
  });

  test("a user's roles from the directory count as well", async () => {
    const someone = await h.person(ACME, []);
    await h.db.knex.raw(`insert into user_roles (user_id, role_name, source) values (?, 'developer', 'directory')`, [
      someone.id,
    ]);
    expect(outcome(await as(clerk, 'POST', `/v1/iam/users/${someone.id}/password-reset`))).toBe('403 escalation');
  });

  test('a key with admin:users has no more permissions than its scopes, and no more than its owner', async () => {
    const owned = text(
      (await as(boss, 'POST', '/v1/iam/api-keys', keyBody(['admin:*'], { user_id: boss.id }))).json,
      'key',
    );
    expect(outcome(await h.api('PUT', `/v1/iam/users/${boss.id}`, { as: owned, body: { name: 'x' } }))).toBe(
      '403 escalation',
    );
    const god = await h.person(ACME, ['superuser']);
    const all = text((await as(god, 'POST', '/v1/iam/api-keys', keyBody(['*'], { user_id: god.id }))).json, 'key');
    const someone = await h.person(ACME, ['developer']);
    await h.api('PUT', `/v1/iam/users/${god.id}`, { as: h.root.token, tenant: ACME, body: { roles: ['clerk'] } });
    expect(outcome(await h.api('PUT', `/v1/iam/users/${someone.id}`, { as: all, body: { name: 'x' } }))).toBe(
      '403 escalation',
    );
  });
});

describe('keys', () => {
  test("creating, widening and rotating one needs the key's permissions", async () => {
    expect(outcome(await as(clerk, 'POST', '/v1/iam/api-keys', keyBody(['rag:read'])))).toBe('403 escalation');
    expect(outcome(await as(clerk, 'POST', '/v1/iam/api-keys', keyBody(['chat:read'])))).toBe('403 escalation');
    const narrow = keyBody(['chat:read'], { resource_constraints: { models: ['llama-3'] } });
    const mine = `/v1/iam/api-keys/${text((await as(clerk, 'POST', '/v1/iam/api-keys', narrow)).json, 'id')}`;
    expect(outcome(await as(clerk, 'PUT', mine, { resource_constraints: {} }))).toBe('403 escalation');
    expect(outcome(await as(clerk, 'PUT', mine, { scopes: ['chat:*'] }))).toBe('200');
    const strong = `/v1/iam/api-keys/${text((await as(boss, 'POST', '/v1/iam/api-keys', keyBody(['rag:read']))).json, 'id')}`;
    expect(outcome(await as(clerk, 'PUT', strong, { description: 'mine now' }))).toBe('403 escalation');
    expect(outcome(await as(clerk, 'POST', `${strong}/rotate`))).toBe('403 escalation');
    expect(outcome(await as(clerk, 'POST', `${strong}/disable`))).toBe('403 escalation');
    await as(boss, 'POST', `${strong}/disable`);
    expect(outcome(await as(clerk, 'POST', `${strong}/enable`))).toBe('403 escalation');
    expect(outcome(await as(clerk, 'DELETE', strong))).toBe('403 escalation');
  });

  test('making, updating, rotating or enabling a key of another acts on its owner too, disabling or revoking it does not', async () => {
    const developer = await h.person(ACME, ['developer', 'reader']);
    const weak = keyBody(['chat:read'], { user_id: developer.id, resource_constraints: { models: ['llama-3'] } });
    expect(outcome(await as(clerk, 'POST', '/v1/iam/api-keys', weak))).toBe('403 escalation');
    const path = `/v1/iam/api-keys/${text((await as(developer, 'POST', '/v1/iam/api-keys', weak)).json, 'id')}`;
    expect(outcome(await as(clerk, 'PUT', path, { description: 'x' }))).toBe('403 escalation');
    expect(outcome(await as(clerk, 'POST', `${path}/rotate`))).toBe('403 escalation');
    expect(outcome(await as(clerk, 'POST', `${path}/disable`))).toBe('200');
    expect(outcome(await as(clerk, 'POST', `${path}/enable`))).toBe('403 escalation');
    expect(outcome(await as(clerk, 'DELETE', path))).toBe('204');
  });

  test('owners may always disable and revoke keys, also those that they could no longer create or enable', async () => {
    const someone = await h.person(ACME, ['developer']);
    const path = `/v1/iam/api-keys/${text((await as(someone, 'POST', '/v1/iam/api-keys', keyBody(['rag:*']))).json, 'id')}`;
    await h.api('PUT', `/v1/iam/users/${someone.id}`, { as: boss.token, body: { roles: [] } });
    expect(outcome(await as(someone, 'PUT', path, { scopes: ['*'] }))).toBe('403 escalation');
    expect(outcome(await as(someone, 'POST', `${path}/disable`))).toBe('200');
    expect(outcome(await as(someone, 'POST', `${path}/enable`))).toBe('403 escalation');
    expect(outcome(await as(someone, 'DELETE', path))).toBe('204');
  });
});
