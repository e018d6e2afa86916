/** Each refused request leaves one row in the audit log. */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Harness, type Json, outcome, type Reply, startHarness, text } from './harness.ts';

let h: Harness;
beforeAll(async () => {
  h = await startHarness({
    auditsRefusals: true,
    settings: { POSTERN_HTTP_TRUSTED_PROXIES: '["127.0.0.1"]' },
  });
});
afterAll(async () => {
  await h.close();
});

const PASSWORD = 'a lake of tin whistles';

/** Addresses of later requests. A row of each is written, because the rows of one address are bounded. */
let later = 0;

/**
 * Rows of the request, after a later refusal has its row: rows of one process are written in the order of the requests.
 */
async function rowsOf(reply: Reply): Promise<readonly Json[]> {
  const address = `192.0.2.${++later}`;
  const last = await h.api('GET', '/v1/iam/users', { as: 'none', headers: { 'x-forwarded-for': address } });
  const of = async ({ headers }: Reply) =>
    (await h.audit()).filter(({ request_id }) => request_id === headers['x-request-id']);
  await expect.poll(() => of(last)).toHaveLength(1);
  return of(reply);
}

test('a refusal that its use case has audited has no second row', async () => {
  const as = h.root.token;
  await h.api('POST', '/v1/iam/tenants', { as, body: { id: 'acme', name: 'Acme' } });
  const manager = { name: 'manager', permissions: ['admin:roles', 'admin:users'] };
  await h.api('POST', '/v1/iam/roles', { as, tenant: 'acme', body: manager });
  const person = { name: 'Ada', email: 'ada@acme.example', password: PASSWORD, roles: ['manager'] };
  const made = await h.api('POST', '/v1/iam/users', { as, tenant: 'acme', body: person });
  const login = (password: string) => h.api('POST', '/v1/auth/login', { body: { email: person.email, password } });
  const ada = text((await login(PASSWORD)).json, 'access_token');
  const cases: readonly (readonly [string, string, () => Promise<Reply>])[] = [
    ['401 invalid_credential', 'auth.login', () => login('another password')],
    [
      '401 invalid_credential',
      'auth.password_change',
      () =>
        h.api('POST', '/v1/auth/password', {
          as: ada,
          body: { old_password: 'another password', new_password: PASSWORD },
        }),
    ],
    [
      '403 reauthentication_required',
      'auth.reauthenticate',
      () =>
        h.api('PUT', `/v1/iam/users/${text(made.json, 'id')}`, {
          as: ada,
          body: { email: 'other@acme.example', current_password: 'another password' },
        }),
    ],
    [
      '403 escalation',
      'role.create',
      () => h.api('POST', '/v1/iam/roles', { as: ada, body: { name: 'stronger', permissions: ['*:*'] } }),
    ],
    [
      '403 reauthentication_required',
      'request.refuse',
      () => h.api('PUT', `/v1/iam/users/${text(made.json, 'id')}`, { as: ada, body: { email: 'other@acme.example' } }),
    ],
    [
      '401 invalid_credential',
      'request.refuse',
      () => h.api('POST', '/v1/auth/refresh', { body: { refresh_token: 'unknown' } }),
    ],
  ];
  for (const [code, action, ask] of cases) {
    const reply = await ask();
    expect(outcome(reply)).toBe(code);
    expect((await rowsOf(reply)).map((row) => row['action'])).toEqual([action]);
  }
  await h.api('POST', '/v1/iam/tenants/acme/suspend', { as });
  const suspended = await login(PASSWORD);
  expect(outcome(suspended)).toBe('403 tenant_suspended');
  expect((await rowsOf(suspended)).map((row) => row['action'])).toEqual(['auth.login']);
});

test('refusals of right passwords and tokens have at most 10 rows of their own in a minute for one user', async () => {
  const as = h.root.token;
  await h.api('POST', '/v1/iam/tenants', { as, body: { id: 'globex', name: 'Globex' } });
  const create = (body: object) => h.api('POST', '/v1/iam/users', { as, tenant: 'globex', body });
  const grace = { name: 'Grace', email: 'grace@globex.example', password: PASSWORD };
  const alan = { name: 'Alan', email: 'alan@globex.example' };
  const [withPassword, withToken] = [await create(grace), await create(alan)];
  const token = text(withToken.json, 'password_setup_token');
  await h.api('POST', '/v1/iam/tenants/globex/suspend', { as });
  // The token acts for its maker, who must exist.
  await h.db.knex.raw(`update one_time_tokens set maker_id = 'usr_00000000000000000000000000'`);
  const login = () => h.api('POST', '/v1/auth/login', { body: { email: grace.email, password: PASSWORD } });
  const reset = () => h.api('POST', '/v1/auth/password/reset', { body: { token, new_password: PASSWORD } });
  for (const [ask, made, action] of [
    [login, withPassword, 'auth.login'],
    [reset, withToken, 'auth.password_setup'],
  ] as const) {
    for (let i = 0; i < 10; i++) await ask();
    expect((await rowsOf(await ask())).map((row) => row['action'])).toEqual(['request.refuse']);
    const own = (await h.audit(action)).filter((row) => row['target_id'] === made.json['id']);
    expect(own.map((row) => row['result'])).toEqual(Array.from({ length: 10 }, () => 'refused'));
  }
});

test('the row of a refused credential has the reason, and the response does not', async () => {
  const made = await h.api('POST', '/v1/iam/api-keys', {
    as: h.root.token,
    body: { description: 'k', scopes: ['admin:users'], expires_in_days: 1 },
  });
  const key = text(made.json, 'key');
  await h.api('POST', `/v1/iam/api-keys/${text(made.json, 'id')}/disable`, { as: h.root.token });
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const foreign = `${part({ alg: 'ES256' })}.${part({ iss: 'https://unknown.example', sub: 'a' })}.AAAA`;
  const cases = [
    [key, 'disabled'],
    [`${key.slice(0, -1)}${key.endsWith('0') ? '1' : '0'}`, 'checksum'],
    [foreign, 'unknown_issuer'],
  ] as const;
  for (const [as, reason] of cases) {
    const reply = await h.api('GET', '/v1/iam/users', { as });
    expect(outcome(reply)).toBe('401 invalid_credential');
    expect(JSON.stringify(reply.json)).not.toContain(reason);
    expect(await rowsOf(reply)).toMatchObject([{ after: { code: 'invalid_credential', reason } }]);
  }
});

test('refusals while the database is unreachable have their rows after it has returned', async () => {
  const { token } = await h.person('default', ['developer']);
  const ask = () => h.api('GET', '/v1/iam/tenants', { as: token });
  expect(outcome(await ask())).toBe('403 insufficient_permission');
  await h.cutDatabase();
  const refused = await ask();
  expect(outcome(refused)).toBe('403 insufficient_permission');
  await h.restoreDatabase();
  expect((await rowsOf(refused)).map((row) => row['action'])).toEqual(['request.refuse']);
});
