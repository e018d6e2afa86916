/** Concurrent changes: in either order the result is one that a serial order allows, and no client gets 5xx. */

import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type Harness, type Json, outcome, type Person, type Reply, startHarness, text } from './harness.ts';

let h: Harness;
let boss: Person;
let round = 0;
beforeAll(async () => {
  h = await startHarness();
  await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id: 'acme', name: 'Acme' } });
  boss = await h.person('acme', ['tenant-admin']);
});
beforeEach(() => {
  round = 0;
});
afterAll(async () => {
  await h.close();
});

const ROUNDS = 12;
const send = (method: string, path: string, body?: object) =>
  h.api(method, `/v1/iam/${path}`, { as: boss.token, ...(body === undefined ? {} : { body }) });

async function made(path: string, body: object): Promise<Reply> {
  const reply = await send('POST', path, body);
  if (reply.status !== 201) throw new Error(`${path}: ${reply.status} ${reply.text}`);
  return reply;
}

async function count(query: string): Promise<number> {
  const { rows } = await h.db.knex.raw<{ rows: Json[] }>(query);
  return rows.length;
}

/** Sends both requests at once, in alternating order, and returns every distinct pair of outcomes. */
async function crossed(prepare: (name: string) => Promise<readonly [() => Promise<Reply>, () => Promise<Reply>]>) {
  const seen = new Set<string>();
  for (; round < ROUNDS; round++) {
    const [one, other] = await prepare(`r${round}-${Math.trunc(performance.now())}`);
    const replies = round % 2 === 0 ? [one(), other()] : [other(), one()].toReversed();
    seen.add((await Promise.all(replies)).map(outcome).join(' and '));
  }
  return [...seen];
}

/** Expects only allowed outcomes. */
function expectAmong(seen: readonly string[], allowed: readonly string[]): void {
  expect(seen.filter((one) => !allowed.includes(one))).toEqual([]);
}

const POLICY = { effect: 'deny', actions: ['rag:*'], resources: ['*'] };

test('a role that is deleted while it is assigned has no holder, or was not deleted', async () => {
  const seen = await crossed(async (name) => {
    await made('roles', { name, permissions: [] });
    const body = { email: `${name}@acme.example`, name, roles: [name] };
    return [() => send('POST', 'users', body), () => send('DELETE', `roles/${name}`)];
  });
  expectAmong(seen, ['201 and 409 in_use', '422 invalid_field and 204']);
  const dangling = `select from user_roles r join users u on u.id = r.user_id
    where r.role_name like 'r%-%' and not exists (select from roles where tenant_id = u.tenant_id and name = r.role_name)`;
  expect(await count(dangling)).toBe(0);
});

test.each([
  ['attached', (name: string) => send('PUT', `roles/${name}/policies/p-${name}`), '404 not_found', '204'],
  [
    'named by a new policy',
    (name: string) => send('POST', 'policies', { ...POLICY, name: `q-${name}`, attached_roles: [name] }),
    '422 invalid_field',
    '201',
  ],
  [
    'named by a changed policy',
    (name: string) => send('PUT', `policies/p-${name}`, { attached_roles: [name] }),
    '422 invalid_field',
    '200',
  ],
])('a role that is deleted while it is %s has no policy, or was not deleted', async (_how, attach, refused, done) => {
  const seen = await crossed(async (name) => {
    await made('roles', { name, permissions: [] });
    await made('policies', { ...POLICY, name: `p-${name}`, attached_roles: ['developer'] });
    return [() => attach(name), () => send('DELETE', `roles/${name}`)];
  });
  expectAmong(seen, [`${done} and 409 in_use`, `${refused} and 204`]);
  const dangling = `select from policy_roles r join policies p on p.id = r.policy_id
    where r.role_name like 'r%-%' and not exists (select from roles where tenant_id = p.tenant_id and name = r.role_name)`;
  expect(await count(dangling)).toBe(0);
});

test('a key that is made for a user who is being deleted is refused, or revoked with the others', async () => {
  const seen = await crossed(async (name) => {
    const user = text((await made('users', { email: `${name}-k@acme.example`, name })).json, 'id');
    const body = { description: name, scopes: ['chat:read'], expires_in_days: 1, user_id: user };
    return [() => send('POST', 'api-keys', body), () => send('DELETE', `users/${user}`)];
  });
  expectAmong(seen, ['201 and 204', '422 invalid_field and 204']);
  const orphaned = `select from api_keys k where k.user_id is not null and k.revoked_at is null
    and not exists (select from users where id = k.user_id)`;
  expect(await count(orphaned)).toBe(0);
});

test('a key that is rotated while it is revoked is revoked', async () => {
  const seen = await crossed(async (name) => {
    const key = text(
      (await made('api-keys', { description: name, scopes: ['chat:read'], expires_in_days: 1 })).json,
      'id',
    );
    return [
      () => send('POST', `api-keys/${key}/rotate`, { grace_seconds: 60 }),
      () => send('DELETE', `api-keys/${key}`),
    ];
  });
  expectAmong(seen, ['200 and 204', '409 revoked and 204']);
  expect(
    await count(`select from api_keys where description like 'r%-%' and user_id is null and revoked_at is null`),
  ).toBe(0);
});

test.each([
  ['user', 'users', (name: string) => ['users', { email: `${name}-t@acme.example`, name: 'P' }] as const],
  [
    'key',
    'api_keys',
    (name: string) => ['api-keys', { description: name, scopes: ['chat:read'], expires_in_days: 1 }] as const,
  ],
] as const)(
  'a tenant that is deleted while a %s is made in it is empty, or was not deleted',
  async (_what, table, request) => {
    const seen = await crossed(async (name) => {
      const [path, body] = request(name);
      await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id: name, name } });
      return [
        () => h.api('POST', `/v1/iam/${path}`, { as: h.root.token, tenant: name, body }),
        () => h.api('DELETE', `/v1/iam/tenants/${name}`, { as: h.root.token }),
      ];
    });
    expectAmong(seen, ['201 and 409 in_use', '403 tenant_mismatch and 204']);
    const left = `select from ${table} x join tenants t on t.id = x.tenant_id where t.deleted_at is not null`;
    expect(await count(left)).toBe(0);
  },
);

test('fifty concurrent attachments and detachments of one policy leave it in the state of one of them', async () => {
  await made('policies', { ...POLICY, name: 'restless', attached_roles: ['analyst'] });
  const turns = Array.from({ length: 50 }, (_, i) =>
    send(i % 2 === 0 ? 'PUT' : 'DELETE', 'roles/developer/policies/restless'),
  );
  expect(new Set((await Promise.all(turns)).map(outcome))).toEqual(new Set(['204']));
  const { json } = await send('GET', 'policies/restless');
  expect([['analyst'], ['analyst', 'developer']]).toContainEqual(json['attached_roles']);
  await send('DELETE', 'roles/developer/policies/restless');
  expect((await send('GET', 'policies/restless')).json['attached_roles']).toEqual(['analyst']);
});
