/** A one-time token acts for its maker: a maker that may not act on the user at its use sets no password with it. */

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { SetupDocument } from '../../src/iam/setup/document.ts';
import { makeOneTimeToken } from '../../src/identity/opaque-tokens.ts';
import { apply, applyPlan, plan, setupOf } from '../setup/support.ts';
import { type Call, type Harness, outcome, type Person, type Reply, startHarness, text } from './harness.ts';

const PASSWORD = 'violet anchors drift slowly';
const OFFICE = '192.0.2.1';

let h: Harness;
beforeAll(async () => {
  h = await startHarness({ settings: { POSTERN_HTTP_TRUSTED_PROXIES: '["127.0.0.1"]' } });
});
afterAll(async () => {
  await h.close();
});

let n = 0;
/**
 * A tenant for each test, with the roles `clerk` (admin:users), `writer` (chat:* of models llama-*) and `helper`
 * (chat:read of llama-3).
 */
let tenant = '';
beforeEach(async () => {
  tenant = `acme-${++n}`;
  await done(root('POST', 'tenants', { id: tenant, name: 'Acme' }));
  await role('clerk', ['admin:users']);
  await role('writer', ['chat:*'], ['llama-*']);
  await role('helper', ['chat:read'], ['llama-3']);
});

const call = (method: string, path: string, as: string, body?: object, rest: Call = {}) =>
  h.api(method, `/v1/iam/${path}`, { as, ...(body === undefined ? {} : { body }), ...rest });
const root = (method: string, path: string, body?: object) =>
  call(method, path, h.root.token, body, path.startsWith('tenants') ? {} : { tenant });
const role = (name: string, permissions: string[], models: string[] = ['*']) =>
  done(root('POST', 'roles', { name, permissions, resource_constraints: { models } }));
const from = (address: string): Call => ({ headers: { 'x-forwarded-for': address } });

async function done(reply: Promise<Reply>): Promise<Reply> {
  const answer = await reply;
  if (answer.status >= 300) throw new Error(`${answer.status} ${answer.text}`);
  return answer;
}

const use = (token: string, address = '198.51.100.7') =>
  h.api('POST', '/v1/auth/password/reset', { body: { token, new_password: PASSWORD }, ...from(address) });

/** Returns the members of a rejection that could distinguish tokens. */
function shown({ status, json, headers }: Reply): unknown {
  const { request_id: _request, ...rest } = json;
  return { status, rest, authenticate: headers['www-authenticate'] };
}

async function lastUse(userId: string): Promise<unknown> {
  const own = (await h.audit('auth.password_setup')).filter((row) => row['target_id'] === userId);
  const last = own.at(-1);
  return last && { result: last['result'], actor: last['actor_type'], tenant: last['tenant_id'], after: last['after'] };
}

interface Given {
  readonly userId: string;
  readonly token: string;
}

let people = 0;
/** A user with the role `helper`, and a one-time token that `maker` made with it or afterwards. */
async function give(maker: string, how: 'create' | 'reset', rest: Call = from(OFFICE)): Promise<Given> {
  const body = { email: `person${++people}@example.test`, name: 'Somebody', roles: ['helper'] };
  const made = await done(how === 'create' ? call('POST', 'users', maker, body, rest) : root('POST', 'users', body));
  const userId = text(made.json, 'id');
  const answer =
    how === 'create' ? made : await done(call('POST', `users/${userId}/password-reset`, maker, undefined, rest));
  return { userId, token: text(answer.json, 'password_setup_token') };
}

async function expectRefused({ userId, token }: Given, reason: string): Promise<void> {
  const unknown = makeOneTimeToken().text;
  expect(shown(await use(token))).toEqual(shown(await use(unknown)));
  expect(await lastUse(userId)).toEqual({ result: 'refused', actor: 'anonymous', tenant, after: { reason } });
  const { rows: users } = await h.db.knex.raw<{ rows: unknown[] }>(
    'select id from users where id = ? and password_hash is not null',
    [userId],
  );
  expect(users).toEqual([]);
}

const setup = (parts: object): SetupDocument => ({ version: 1, tenants: [{ id: tenant, name: 'Acme', ...parts }] });
const allow = (rest: object = {}) => ({
  name: `wide-${n}`,
  effect: 'allow',
  actions: ['rag:*'],
  resources: ['*'],
  ...rest,
});
const policy = (rest: object = {}) => done(root('POST', 'policies', allow(rest)));
const conditions = { ip_address: { in: ['203.0.113.0/24'] } };
const noPolicy = () => done(root('DELETE', `policies/wide-${n}`));
const helper = (permissions: string[], models: string[]) =>
  done(root('PUT', 'roles/helper', { permissions, resource_constraints: { models } }));
const narrow = () => helper(['chat:read'], ['llama-3']);

type Act = () => Promise<unknown>;

const WIDENINGS: readonly (readonly [string, Act, Act])[] = [
  ['its role gets a permission', () => helper(['chat:read', 'rag:write'], ['llama-3']), narrow],
  ['its role loses a constraint', () => helper(['chat:read', 'chat:write'], ['*']), narrow],
  ['an allow policy is made for its role', () => policy({ attached_roles: ['helper'] }), noPolicy],
  ['a conditional allow policy is made for everyone', () => policy({ applies_to: 'everyone', conditions }), noPolicy],
  [
    'an allow policy is attached to its role',
    async () => {
      await policy();
      await done(root('PUT', `roles/helper/policies/wide-${n}`));
    },
    noPolicy,
  ],
  [
    'an allow policy of its role is enabled',
    async () => {
      await policy({ attached_roles: ['helper'], enabled: false });
      await done(root('PUT', `policies/wide-${n}`, { enabled: true }));
    },
    noPolicy,
  ],
  [
    'a setup widens its role',
    () => apply(h.db, setup({ roles: [{ name: 'helper', permissions: ['chat:read', 'rag:write'] }] })),
    narrow,
  ],
  [
    'a setup attaches an allow policy to its role',
    () => apply(h.db, setup({ policies: [allow({ attached_roles: ['helper'] })] })),
    noPolicy,
  ],
  [
    'a setup writes a global conditional allow policy for everyone',
    () => apply(h.db, { version: 1, global_policies: [{ ...GLOBAL, conditions }] }),
    () => done(root('DELETE', 'policies/wide-everywhere')),
  ],
];
const GLOBAL = {
  name: 'wide-everywhere',
  effect: 'allow',
  actions: ['rag:*'],
  resources: ['*'],
  applies_to: 'everyone',
} as const;

describe.each(['create', 'reset'] as const)('a token of %s whose user is stronger than its maker is refused', (how) => {
  test.each(WIDENINGS)('when %s, and works again when that is undone', async (_name, widen, undo) => {
    const clerk = await h.person(tenant, ['clerk', 'writer']);
    const given = await give(clerk.token, how);
    await widen();
    await expectRefused(given, 'escalation');
    await undo();
    expect(outcome(await use(given.token))).toBe('204');
    expect(await lastUse(given.userId)).toMatchObject({ result: 'success' });
  });

  const EMAIL = () => ({ email: `person${people}@example.test`, name: 'Somebody' });
  test.each([
    ['the API gives it a role', (id: string) => done(root('PUT', `users/${id}`, { roles: ['helper', 'developer'] }))],
    ['it becomes an administrator', (id: string) => done(root('PUT', `users/${id}`, { roles: ['admin'] }))],
    ['a setup gives it a role', () => apply(h.db, setup({ users: [{ ...EMAIL(), roles: ['helper', 'developer'] }] }))],
    [
      'it gets a role behind the API',
      (id: string) => h.db.knex('user_roles').insert({ user_id: id, role_name: 'developer' }),
    ],
  ])('when %s', async (_name, widen) => {
    const clerk = await h.person(tenant, ['clerk', 'writer']);
    const given = await give(clerk.token, how);
    await widen(given.userId);
    expect(outcome(await use(given.token))).toBe('401 invalid_credential');
  });
});

test('a refused token answers a weak password like an unknown token does', async () => {
  const clerk = await h.person(tenant, ['clerk', 'writer']);
  const { token } = await give(clerk.token, 'create');
  await helper(['rag:write'], ['*']);
  const weak = (text: string) =>
    h.api('POST', '/v1/auth/password/reset', { body: { token: text, new_password: 'weak' } });
  expect(shown(await weak(token))).toEqual(shown(await weak(makeOneTimeToken().text)));
});

describe('a token of a user', () => {
  interface Maker {
    readonly person: Person;
    readonly home: string;
  }
  const clerk = async (): Promise<Maker> => ({ person: await h.person(tenant, ['clerk', 'writer']), home: tenant });
  const lodger = async (): Promise<Maker> => {
    const home = `home-${n}`;
    await done(root('POST', 'tenants', { id: home, name: 'Home' }));
    return { person: await h.person(home, ['admin']), home };
  };
  const on = ({ person, home }: Maker, method: string, action: string, body?: object) =>
    done(call(method, `users/${person.id}${action}`, h.root.token, body, { tenant: home }));
  const tenantOf = ({ home }: Maker, action: string) => done(root('POST', `tenants/${home}/${action}`));
  const roles = (maker: Maker, ...names: string[]) => on(maker, 'PUT', '', { roles: names });
  const change = (permissions: string[]) => done(root('PUT', 'roles/clerk', { permissions }));
  const deny = { effect: 'deny', actions: ['admin:users'], attached_roles: ['clerk'] };

  type End = readonly [
    string,
    string,
    () => Promise<Maker>,
    (maker: Maker) => Promise<unknown>,
    (maker: Maker) => Promise<unknown>,
  ];
  const ENDS: readonly End[] = [
    ['deactivated', 'maker_deactivated', clerk, (m) => on(m, 'POST', '/deactivate'), (m) => on(m, 'POST', '/activate')],
    ['stripped of its role', 'insufficient_permission', clerk, (m) => roles(m), (m) => roles(m, 'clerk', 'writer')],
    ['without a role that it gave', 'escalation', clerk, (m) => roles(m, 'clerk'), (m) => roles(m, 'clerk', 'writer')],
    [
      'in a narrowed role',
      'insufficient_permission',
      clerk,
      () => change(['models:read']),
      () => change(['admin:users']),
    ],
    ['denied by a policy', 'denied_by_policy', clerk, () => policy(deny), noPolicy],
    ['in a suspended tenant', 'tenant_suspended', clerk, (m) => tenantOf(m, 'suspend'), (m) => tenantOf(m, 'activate')],
    [
      'of a suspended tenant elsewhere',
      'tenant_suspended',
      lodger,
      (m) => tenantOf(m, 'suspend'),
      (m) => tenantOf(m, 'activate'),
    ],
    [
      'no platform administrator now',
      'tenant_mismatch',
      lodger,
      (m) => roles(m, 'tenant-admin'),
      (m) => roles(m, 'admin'),
    ],
  ];

  test.each(ENDS)(
    'that is %s is rejected, and works again with the permission',
    async (_name, reason, maker, end, undo) => {
      const made = await maker();
      const given = await give(made.person.token, 'reset', {
        ...from(OFFICE),
        ...(made.home === tenant ? {} : { tenant }),
      });
      await end(made);
      await expectRefused(given, reason);
      await undo(made);
      expect(outcome(await use(given.token))).toBe('204');
    },
  );

  test('that is deleted is refused', async () => {
    const maker = await clerk();
    const given = await give(maker.person.token, 'create');
    await on(maker, 'DELETE', '');
    await expectRefused(given, 'maker_missing');
  });

  test('that logged out works', async () => {
    const maker = await clerk();
    const given = await give(maker.person.token, 'create');
    await on(maker, 'DELETE', '/sessions');
    expect(outcome(await use(given.token))).toBe('204');
  });

  test('is used from another address than that of its maker, to which a policy binds the maker', async () => {
    await policy({ ...deny, conditions: { ip_address: { not_in: [`${OFFICE}/32`] } } });
    const maker = await clerk();
    const given = await give(maker.person.token, 'create');
    await done(root('PUT', `policies/wide-${n}`, { conditions: { ip_address: { not_in: ['203.0.113.0/24'] } } }));
    await expectRefused(given, 'denied_by_policy');
    await done(root('PUT', `policies/wide-${n}`, { conditions: { ip_address: { not_in: [`${OFFICE}/32`] } } }));
    expect(outcome(await use(given.token))).toBe('204');
  });
});

describe('a token of an API key', () => {
  interface Key {
    readonly id: string;
    readonly secret: string;
  }
  async function key(owner?: Person): Promise<Key> {
    const body = { description: 'sync', scopes: ['admin:users', 'chat:*'], expires_in_days: 1 };
    const { json } = await done(root('POST', 'api-keys', owner === undefined ? body : { ...body, user_id: owner.id }));
    return { id: text(json, 'id'), secret: text(json, 'key') };
  }
  const owner = () => h.person(tenant, ['clerk', 'writer']);

  type End = readonly [string, string, (key: Key, owner: Person) => Promise<unknown>];
  const ENDS: readonly End[] = [
    ['revoked', 'maker_revoked', ({ id }) => done(root('DELETE', `api-keys/${id}`))],
    [
      'expired',
      'maker_expired',
      ({ id }) => h.db.knex.raw('update api_keys set expires_at = now() where id = ?', [id]),
    ],
    ['narrowed', 'insufficient_permission', ({ id }) => done(root('PUT', `api-keys/${id}`, { scopes: ['chat:*'] }))],
    [
      'too narrow for the user',
      'escalation',
      ({ id }) => done(root('PUT', `api-keys/${id}`, { scopes: ['admin:users'] })),
    ],
    ['of a deactivated owner', 'maker_deactivated', (_key, { id }) => done(root('POST', `users/${id}/deactivate`))],
    [
      'of an owner without the role',
      'insufficient_permission',
      (_key, { id }) => done(root('PUT', `users/${id}`, { roles: [] })),
    ],
    ['of a deleted owner', 'maker_revoked', (_key, { id }) => done(root('DELETE', `users/${id}`))],
    ['of a suspended tenant', 'tenant_suspended', () => done(root('POST', `tenants/${tenant}/suspend`))],
  ];
  test.each(ENDS)('that is %s is refused', async (_name, reason, end) => {
    const person = await owner();
    const maker = await key(person);
    const given = await give(maker.secret, 'create');
    await end(maker, person);
    await expectRefused(given, reason);
  });

  test('that belongs to the tenant, or was rotated, works until the key is revoked', async () => {
    const maker = await key();
    const [first, second] = [await give(maker.secret, 'create'), await give(maker.secret, 'create')];
    await done(root('POST', `api-keys/${maker.id}/rotate`, {}));
    expect(outcome(await use(first.token))).toBe('204');
    await done(root('DELETE', `api-keys/${maker.id}`));
    await expectRefused(second, 'maker_revoked');
  });
});

test('a token of the command line works, with any later permissions of its user', async () => {
  const email = `person${++people}@example.test`;
  const wanted = setup({ users: [{ email, name: 'Somebody' }] });
  const steps = await plan(h.db, wanted);
  if ('errors' in steps) throw new Error(JSON.stringify(steps.errors));
  const applied = await applyPlan(h.db, setupOf(wanted), steps, { setupTokens: true });
  const token = applied.kind === 'applied' ? applied.setupTokens[0]?.token : undefined;
  await h.db.knex.raw(`insert into user_roles (user_id, role_name) select id, 'admin' from users where email = ?`, [
    email,
  ]);
  expect(outcome(await use(token ?? ''))).toBe('204');
});

test('a token without a maker, as a server of an older version writes it, is refused', async () => {
  const given = await give((await h.person(tenant, ['clerk', 'writer'])).token, 'create');
  await h.db.knex.raw(
    'update one_time_tokens set maker_kind = null, maker_tenant_id = null, maker_id = null, maker_address = null where user_id = ?',
    [given.userId],
  );
  await expectRefused(given, 'maker_unknown');
});

describe('a right of the maker that ends while its token is used', () => {
  async function waiting(): Promise<number> {
    const { rows: found } = await h.db.knex.raw<{ rows: { n: number }[] }>(
      `select count(*)::int as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    );
    return found[0]?.n ?? 0;
  }

  test.each([
    ['its status', `update users set status = 'deactivated' where id = :maker`, 'maker_deactivated'],
    [
      'its role',
      `update roles set permissions = '{}' where tenant_id = :tenant and name = 'clerk'`,
      'insufficient_permission',
    ],
    ['its tenant', `update tenants set status = 'suspended' where id = :tenant`, 'tenant_suspended'],
    [
      "its user's role",
      `update roles set permissions = '{rag:write}' where tenant_id = :tenant and name = 'helper'`,
      'escalation',
    ],
  ])('counts: %s', async (_name, statement, reason) => {
    const maker = await h.person(tenant, ['clerk', 'writer']);
    const given = await give(maker.token, 'create');
    let reply: Promise<Reply> | undefined;
    await h.db.knex.transaction(async (trx) => {
      await trx.raw(statement, statement.includes(':maker') ? { maker: maker.id } : { tenant });
      reply = use(given.token);
      await expect.poll(waiting, { interval: 10 }).toBe(1);
    });
    expect(await reply?.then(outcome)).toBe('401 invalid_credential');
    expect(await lastUse(given.userId)).toMatchObject({ after: { reason } });
  });
});
