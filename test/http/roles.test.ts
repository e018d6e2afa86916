import { beforeEach, describe, expect, test } from 'vitest';
import { column, type Harness, it, outcome, type Person, rows, text, unique } from './harness.ts';

const ACME = unique('acme');
const GLOBEX = unique('globex');

let h: Harness;
let boss: Person;
it.beforeAll(async ({ harness }) => {
  h = harness;
  for (const id of [ACME, GLOBEX]) await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id, name: id } });
  boss = await h.person(ACME, ['tenant-admin']);
});

const ROLES = '/v1/iam/roles';
let n = 0;
let name = '';
beforeEach(() => {
  name = `role-${++n}`;
});

const create = (body: object = {}, as = boss.token) =>
  h.api('POST', ROLES, { as, body: { name, permissions: ['chat:read'], ...body } });

describe('custom roles', () => {
  test('are made, shown and changed member by member', async () => {
    const made = await create({
      description: 'Reads',
      resource_constraints: { models: ['llama-*'], collections: null },
    });
    expect([outcome(made), made.headers['location']]).toEqual(['201', `${ROLES}/${name}`]);
    expect(made.json).toEqual({
      name,
      description: 'Reads',
      permissions: ['chat:read'],
      resource_constraints: { models: ['llama-*'] },
      builtin: false,
      tenant_id: ACME,
      created_at: expect.any(String),
      updated_at: expect.any(String),
    });
    const put = await h.api('PUT', `${ROLES}/${name}`, { as: boss.token, body: { permissions: ['chat:*'] } });
    expect(put.json).toMatchObject({
      description: 'Reads',
      permissions: ['chat:*'],
      resource_constraints: { models: ['llama-*'] },
    });
    const any = await h.api('PUT', `${ROLES}/${name}`, { as: boss.token, body: { resource_constraints: null } });
    expect(any.json['resource_constraints']).toEqual({});
    expect((await h.api('GET', `${ROLES}/${name}`, { as: boss.token })).json).toEqual(any.json);
  });

  test.each([
    ['half a wildcard', { permissions: ['cha*:read'] }, '/permissions/0'],
    ['a name in capitals', { name: 'Role' }, '/name'],
    ['a constraint of an unknown kind', { resource_constraints: { planets: [] } }, '/resource_constraints/planets'],
    ['an empty name in a constraint', { resource_constraints: { models: [''] } }, '/resource_constraints/models/0'],
  ])('%s is rejected with the path of its member', async (_name, body, path) => {
    const reply = await create(body);
    expect([outcome(reply), reply.json['errors']]).toMatchObject(['422 invalid_field', [{ path }]]);
  });

  test('have a unique name in the tenant, and other tenants may use the same name', async () => {
    await create();
    expect(outcome(await create())).toBe('409 already_exists');
    expect(outcome(await create({ name: 'admin' }))).toBe('409 already_exists');
    const there = await h.api('POST', ROLES, { as: h.root.token, tenant: GLOBEX, body: { name, permissions: [] } });
    expect(outcome(there)).toBe('201');
  });
});

describe('built-in roles', () => {
  test('are in every list among the others, by name, page after page', async () => {
    await create({ name: `b${name}` });
    const names: unknown[] = [];
    let cursor = '';
    do {
      const page = await h.api('GET', `${ROLES}?limit=3${cursor}`, { as: boss.token });
      names.push(...column(page, 'name'));
      cursor = page.json['has_more'] === true ? `&cursor=${text(page.json, 'next_cursor')}` : '';
    } while (cursor !== '');
    expect(names.slice(1).every((one, i) => String(one) > String(names[i]))).toBe(true);
    expect(new Set(names).size).toBe(names.length);
    expect(names).toEqual(
      expect.arrayContaining(['admin', 'analyst', 'auditor', 'developer', 'ml-engineer', 'tenant-admin', `b${name}`]),
    );
    expect((await h.api('GET', `${ROLES}/admin`, { as: boss.token })).json).toMatchObject({
      builtin: true,
      permissions: ['*'],
    });
  });

  test('cannot be changed or deleted, even by platform administrators', async () => {
    const call = { as: h.root.token, body: { description: 'mine' } };
    expect(outcome(await h.api('PUT', `${ROLES}/developer`, call))).toBe('403 builtin_role');
    expect(outcome(await h.api('DELETE', `${ROLES}/developer`, { as: h.root.token }))).toBe('403 builtin_role');
  });
});

describe('a role in use', () => {
  test('is deleted only by force, which takes it from users and policies', async () => {
    await create();
    const someone = await h.person(ACME, [name]);
    await h.api('POST', '/v1/iam/policies', {
      as: boss.token,
      body: { name: `for-${name}`, effect: 'deny', actions: ['rag:*'], resources: ['*'], attached_roles: [name] },
    });
    expect(outcome(await h.api('DELETE', `${ROLES}/${name}`, { as: boss.token }))).toBe('409 in_use');
    expect(outcome(await h.api('DELETE', `${ROLES}/${name}?force=true`, { as: boss.token }))).toBe('204');
    expect((await h.api('GET', `/v1/iam/users/${someone.id}`, { as: boss.token })).json['roles']).toEqual([]);
    const policy = await h.api('GET', `/v1/iam/policies/for-${name}`, { as: boss.token });
    expect(policy.json).toMatchObject({
      applies_to: 'roles',
      attached_roles: [],
      notice: expect.stringContaining('no principal'),
    });
    expect(outcome(await h.api('GET', `${ROLES}/${name}`, { as: boss.token }))).toBe('404 not_found');
  });
});

describe('policies of a role', () => {
  const policy = (body: object) =>
    h.api('POST', '/v1/iam/policies', {
      as: boss.token,
      body: { name: `p-${name}`, effect: 'deny', actions: ['rag:*'], resources: ['*'], ...body },
    });

  test('are attached and detached, and a repetition changes nothing', async () => {
    await create();
    await policy({});
    const path = `${ROLES}/${name}/policies`;
    const one = `${path}/p-${name}`;
    for (const method of ['PUT', 'PUT']) expect(outcome(await h.api(method, one, { as: boss.token }))).toBe('204');
    expect(rows(await h.api('GET', path, { as: boss.token }))).toMatchObject([
      { name: `p-${name}`, applies_to: 'roles', attached_roles: [name] },
    ]);
    for (const method of ['DELETE', 'DELETE'])
      expect(outcome(await h.api(method, one, { as: boss.token }))).toBe('204');
    expect(rows(await h.api('GET', path, { as: boss.token }))).toEqual([]);
  });

  test('a role or policy that is not there is not found', async () => {
    await create();
    await policy({});
    expect(outcome(await h.api('PUT', `${ROLES}/nobody/policies/p-${name}`, { as: boss.token }))).toBe('404 not_found');
    expect(outcome(await h.api('PUT', `${ROLES}/${name}/policies/nothing`, { as: boss.token }))).toBe('404 not_found');
    expect(outcome(await h.api('GET', `${ROLES}/nobody/policies`, { as: boss.token }))).toBe('404 not_found');
  });
});
