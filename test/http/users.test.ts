import { beforeEach, describe, expect, test } from 'vitest';
import { type Harness, it, outcome, type Person, rows, text, unique } from './harness.ts';
import { usageEvent } from './isolation-probes.ts';

const ACME = unique('acme');
const GLOBEX = unique('globex');

let h: Harness;
/** A tenant administrator of acme. */
let boss: Person;
it.beforeAll(async ({ harness }) => {
  h = harness;
  for (const id of [ACME, GLOBEX]) await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id, name: id } });
  boss = await h.person(ACME, ['tenant-admin']);
});

const USERS = '/v1/iam/users';
let n = 0;
let email = '';
beforeEach(() => {
  email = `user${++n}@example.test`;
});

interface Where {
  readonly tenant?: string;
  readonly tenant_id: string;
}

const create = (body: object, as = boss.token) =>
  h.api('POST', USERS, { as, body: { email, name: 'Somebody', ...body } });

describe('making a user', () => {
  test('answers 201 with the user, where it is, and a one-time token when no password was given', async () => {
    const reply = await create({ email: 'Ada@Example.TEST', department: 'Research', roles: ['developer', 'analyst'] });
    expect(outcome(reply)).toBe('201');
    const id = text(reply.json, 'id');
    expect(reply.headers['location']).toBe(`${USERS}/${id}`);
    expect(reply.json).toEqual({
      id: expect.stringMatching(/^usr_[0-9a-z]{26}$/),
      email: 'ada@example.test',
      name: 'Somebody',
      department: 'Research',
      metadata: {},
      rate_limits: null,
      roles: ['analyst', 'developer'],
      directory_roles: [],
      issuer_roles: [],
      identities: [],
      tenant_id: ACME,
      status: 'active',
      source: 'local',
      last_login_at: null,
      locked_until: null,
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      updated_at: expect.any(String),
      password_setup_token: expect.any(String),
    });
    const { password_setup_token: _token, ...user } = reply.json;
    expect((await h.api('GET', `${USERS}/${id}`, { as: boss.token })).json).toEqual(user);
  });

  test('with a password there is no token, and neither password nor token is in the audit log', async () => {
    const password = 'violet anchors drift slowly';
    const reply = await create({ password });
    expect([outcome(reply), reply.json['password_setup_token']]).toEqual(['201', undefined]);
    const token = text((await create({ email: `other-${email}` })).json, 'password_setup_token');
    const log = JSON.stringify(await h.audit());
    expect(log).toContain(text(reply.json, 'id'));
    expect(log).not.toContain(password);
    expect(log).not.toContain(token);
    expect(log).not.toContain('argon2');
  });

  test.each([
    ['a short password', { password: 'short' }, '/password'],
    ['an unknown role', { roles: ['developer', 'wizard'] }, '/roles/1'],
    ['a role name that is none', { roles: ['No Such'] }, '/roles/0'],
    ['an address without host', { email: 'ada@' }, '/email'],
    ['a blank name', { name: '  ' }, '/name'],
    ['an unknown member', { admin: true }, '/admin'],
    ['a status of its own choice', { status: 'active' }, '/status'],
  ])('%s is rejected with the path of its member', async (_name, body, path) => {
    const reply = await create(body);
    expect([outcome(reply), reply.json['errors']]).toMatchObject(['422 invalid_field', [{ path }]]);
  });

  test("another tenant's role is unknown here", async () => {
    await h.api('POST', '/v1/iam/roles', {
      as: h.root.token,
      tenant: GLOBEX,
      body: { name: 'local-hero', permissions: [] },
    });
    expect(outcome(await create({ roles: ['local-hero'] }))).toBe('422 invalid_field');
  });

  test('an email address is unique on the whole platform, in any case', async () => {
    await create({});
    const reply = await h.api('POST', USERS, {
      as: h.root.token,
      tenant: GLOBEX,
      body: { email: email.toUpperCase(), name: 'Twin' },
    });
    expect(outcome(reply)).toBe('409 already_exists');
  });

  test('of concurrent creations for the last place only one succeeds', async () => {
    await h.api('POST', '/v1/iam/tenants', {
      as: h.root.token,
      body: { id: `small${n}`, name: 'Small', quotas: { max_users: 1 } },
    });
    const replies = await Promise.all(
      [1, 2, 3, 4].map((i) =>
        h.api('POST', USERS, { as: h.root.token, tenant: `small${n}`, body: { email: `p${i}-${email}`, name: 'P' } }),
      ),
    );
    expect(replies.map(outcome).toSorted()).toEqual([
      '201',
      '409 quota_exceeded',
      '409 quota_exceeded',
      '409 quota_exceeded',
    ]);
  });
});

describe('tenant_id', () => {
  test('of the body means the same as the header', async () => {
    expect((await create({ tenant_id: GLOBEX }, h.root.token)).json['tenant_id']).toBe(GLOBEX);
  });

  test.each([
    ['both and different', { tenant: ACME, tenant_id: GLOBEX }, 'root', '400 invalid_tenant'],
    ['both and the same', { tenant: ACME, tenant_id: ACME }, 'root', '201'],
    ['malformed', { tenant_id: 'No!' }, 'root', '400 invalid_tenant'],
    ['every tenant', { tenant_id: '*' }, 'root', '400 invalid_tenant'],
    ['empty', { tenant_id: '' }, 'root', '400 invalid_tenant'],
    ['too long', { tenant_id: 'a'.repeat(64) }, 'root', '400 invalid_tenant'],
    ['a tenant that is not', { tenant_id: 'nowhere' }, 'root', '403 tenant_mismatch'],
    ['another tenant of no platform administrator', { tenant_id: GLOBEX }, 'boss', '403 tenant_mismatch'],
    ['its own', { tenant_id: ACME }, 'boss', '201'],
  ])('%s', async (_name, where: Where, who, expected) => {
    const { tenant, tenant_id } = where;
    const as = who === 'root' ? h.root.token : boss.token;
    const reply = await h.api('POST', USERS, {
      as,
      ...(tenant === undefined ? {} : { tenant }),
      body: { email, name: 'X', tenant_id },
    });
    expect(outcome(reply)).toBe(expected);
  });

  test.each([
    ['X-Tenant-ID: acme', '/v1/iam/users', ACME, 'boss', '200'],
    ['a malformed header', '/v1/iam/users', 'ACME', 'boss', '400 invalid_tenant'],
    ["another tenant's header", '/v1/iam/users', GLOBEX, 'boss', '403 tenant_mismatch'],
    ["another tenant's filter", `/v1/iam/users?tenant_id=${GLOBEX}`, undefined, 'boss', '403 tenant_mismatch'],
    ['every tenant, asked by one', '/v1/iam/users?tenant_id=*', undefined, 'boss', '403 tenant_mismatch'],
    [
      'a malformed header and every tenant, asked by one',
      '/v1/iam/users?tenant_id=*',
      'ACME',
      'boss',
      '400 invalid_tenant',
    ],
    ['header and filter that differ', `/v1/iam/users?tenant_id=${ACME}`, GLOBEX, 'root', '400 invalid_tenant'],
    ['a header for a tenant that is not', '/v1/iam/users', 'nowhere', 'root', '403 tenant_mismatch'],
    ['a filter twice', `/v1/iam/users?tenant_id=${ACME}&tenant_id=${ACME}`, undefined, 'root', '400 invalid_tenant'],
    [
      'a filter twice, asked by one',
      `/v1/iam/users?tenant_id=${ACME}&tenant_id=*`,
      undefined,
      'ada',
      '400 invalid_tenant',
    ],
    ['a filter that is not UTF-8', '/v1/iam/users?tenant_id=%ff', undefined, 'root', '400 invalid_tenant'],
    ['a filter that is too long', `/v1/iam/users?tenant_id=${'a'.repeat(64)}`, undefined, 'root', '400 invalid_tenant'],
    ['an empty filter', '/v1/iam/users?tenant_id=', undefined, 'root', '400 invalid_tenant'],
  ])('in lists: %s', async (_name, path, tenant, who, expected) => {
    const as = (who === 'root' ? h.root : who === 'boss' ? boss : await h.person(ACME, ['developer'])).token;
    expect(outcome(await h.api('GET', path, { as, ...(tenant === undefined ? {} : { tenant }) }))).toBe(expected);
  });

  test.each([
    ['/v1/iam/usage/events', { events: [usageEvent()] }],
    ['/v1/iam/explain/who-can', { permission: 'chat:write' }],
  ])('that is too long is malformed in the body of %s as well', async (path, body) => {
    const reply = await h.api('POST', path, { as: h.root.token, body: { ...body, tenant_id: 'a'.repeat(64) } });
    expect(outcome(reply)).toBe('400 invalid_tenant');
  });

  test('a platform administrator lists every tenant with *', async () => {
    await create({});
    const tenants = new Set(
      rows(await h.api('GET', `${USERS}?tenant_id=*&limit=200`, { as: h.root.token })).map((u) => u['tenant_id']),
    );
    expect(tenants).toContain(ACME);
    expect(tenants).toContain('default');
    const own = rows(await h.api('GET', USERS, { as: h.root.token })).map((u) => u['tenant_id']);
    expect(new Set(own)).toEqual(new Set(['default']));
  });
});

describe('lists', () => {
  test('pages follow each other without gap or repeat while rows come and go', async () => {
    const paged = unique('paged');
    await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id: paged, name: 'Paged' } });
    const made: string[] = [];
    for (let i = 0; i < 5; i++) made.unshift((await h.person(paged, [])).id);
    const get = (query: string) => h.api('GET', `${USERS}?tenant_id=${paged}&${query}`, { as: h.root.token });
    const first = await get('limit=2');
    expect([rows(first).map((u) => u['id']), first.json['has_more'], first.json['object']]).toEqual([
      made.slice(0, 2),
      true,
      'list',
    ]);
    await h.api('DELETE', `${USERS}/${made[1]}`, { as: h.root.token, tenant: paged });
    const second = await get(`limit=2&cursor=${text(first.json, 'next_cursor')}`);
    const third = await get(`limit=2&cursor=${text(second.json, 'next_cursor')}`);
    expect([...rows(second), ...rows(third)].map((u) => u['id'])).toEqual(made.slice(2));
    expect([third.json['has_more'], third.json['next_cursor']]).toEqual([false, null]);
  });

  test('are newest first, or sorted by name and last login in both directions', async () => {
    const tenant = unique('sorted');
    await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id: tenant, name: tenant } });
    const [a, b, c] = [await h.person(tenant, []), await h.person(tenant, []), await h.person(tenant, [])];
    for (const [id, name, at] of [
      [a.id, 'beta', '2026-01-02'],
      [b.id, 'Gamma', '2026-01-01'],
      [c.id, 'Alpha', undefined],
    ] as const) {
      await h.db.knex('users').where({ id }).update({ name });
      await h.db.knex('user_logins').where({ user_id: id }).delete();
      if (at !== undefined) await h.db.knex('user_logins').insert({ user_id: id, last_login_at: at });
    }
    for (const [sort, expected] of [
      [undefined, [c, b, a]],
      ['created_at', [a, b, c]],
      ['name', [c, a, b]],
      ['-name', [b, a, c]],
      ['-last_login_at', [a, b, c]],
      ['last_login_at', [b, a, c]],
    ] as const) {
      const query = `tenant_id=${tenant}${sort === undefined ? '' : `&sort=${sort}`}`;
      const get = (more: string) => h.api('GET', `${USERS}?${query}${more}`, { as: h.root.token });
      const ids = expected.map(({ id }) => id);
      expect([sort, rows(await get('')).map((u) => u['id'])]).toEqual([sort, ids]);
      const first = await get('&limit=2');
      const rest = await get(`&cursor=${text(first.json, 'next_cursor')}`);
      expect([sort, rows(rest).map((u) => u['id'])]).toEqual([sort, ids.slice(2)]);
    }
    expect(outcome(await h.api('GET', `${USERS}?sort=email`, { as: h.root.token }))).toBe('400 invalid_parameter');
  });

  test("a cursor of another tenant's list is refused", async () => {
    const first = await h.api('GET', `${USERS}?tenant_id=${ACME}&limit=1`, { as: h.root.token });
    const reply = await h.api('GET', `${USERS}?tenant_id=default&cursor=${text(first.json, 'next_cursor')}`, {
      as: h.root.token,
    });
    expect(outcome(reply)).toBe('400 invalid_parameter');
  });

  test('filters narrow by role, status, email address and any part of the name', async () => {
    const { json } = await create({ name: `Grace ${n}_% Hopper`, roles: ['auditor'] });
    const id = text(json, 'id');
    await h.api('POST', `${USERS}/${id}/deactivate`, { as: boss.token });
    const found = async (query: string) =>
      rows(await h.api('GET', `${USERS}?${query}`, { as: boss.token })).map((u) => u['id']);
    expect(await found('role=auditor')).toEqual([id]);
    expect(await found('status=deactivated')).toEqual([id]);
    expect(await found(`email=${email.toUpperCase()}`)).toEqual([id]);
    expect(await found(`q=${encodeURIComponent(`${n}_% hop`)}`)).toEqual([id]);
    expect(await found('q=%25%25')).toEqual([]);
    expect(await found('role=auditor&status=active')).toEqual([]);
  });
});

describe('changing several users', () => {
  const changeThem = (body: object, { as = boss.token, query = '' } = {}) =>
    h.api('POST', `${USERS}/change${query}`, { as, body });
  const outcomes = (reply: Awaited<ReturnType<typeof changeThem>>) =>
    rows(reply).map((row) => [row['id'], row['outcome']]);
  const userOf = async ({ id }: Person) => (await h.api('GET', `${USERS}/${id}`, { as: boss.token })).json;

  test('by id deactivates each with its sessions, returns the outcome of each, and leaves an audit row for each changed user', async () => {
    const [one, two, gone] = [await h.person(ACME, []), await h.person(ACME, []), await h.person(ACME, [])];
    const theirs = await h.person(GLOBEX, []);
    await h.api('POST', `${USERS}/${gone.id}/deactivate`, { as: boss.token });
    const body = { action: 'deactivate', ids: [two.id, one.id, gone.id, theirs.id, 'no id', one.id] };
    const trial = await changeThem(body, { query: '?dry_run=true' });
    expect([trial.json['changed'], (await userOf(one))['status']]).toEqual([2, 'active']);
    const before = (await h.audit('user.deactivate')).length;
    const reply = await changeThem(body);
    expect(reply.json).toMatchObject({ dry_run: false, changed: 2, has_more: false });
    expect(outcomes(reply)).toEqual([
      [two.id, 'changed'],
      [one.id, 'changed'],
      [gone.id, 'unchanged'],
      [theirs.id, 'not_found'],
      ['no id', 'not_found'],
    ]);
    expect([(await userOf(one))['status'], (await userOf(two))['status']]).toEqual(['deactivated', 'deactivated']);
    expect(outcome(await h.api('GET', '/v1/auth/me', { as: one.token }))).toBe('401 invalid_credential');
    expect(outcome(await h.api('GET', '/v1/auth/me', { as: theirs.token }))).toBe('200');
    const rowsAfter = (await h.audit('user.deactivate')).slice(before);
    expect(rowsAfter.map((row) => row['result'])).toEqual(['success', 'success']);
    expect(new Set(rowsAfter.map((row) => row['target_id']))).toEqual(new Set([one.id, two.id]));
  });

  test('by id reaches the users of every tenant for a platform administrator that names none', async () => {
    const as = h.root.token;
    const [here, there, own] = [await h.person(ACME, []), await h.person(GLOBEX, []), await h.person('default', [])];
    const missing = `usr_${'0'.repeat(26)}`;
    const ids = [there.id, missing, here.id, own.id, there.id];
    const deactivate = { action: 'deactivate', ids };
    const trial = await changeThem(deactivate, { as, query: '?dry_run=true' });
    expect([trial.json['changed'], outcomes(trial)[0]]).toEqual([3, [there.id, 'would_change']]);
    const named = await h.api('POST', `${USERS}/change?dry_run=true`, { as, tenant: ACME, body: deactivate });
    expect([named.json['changed'], outcomes(named)[0]]).toEqual([1, [there.id, 'not_found']]);
    // A role of one tenant is unknown in the others.
    await h.api('POST', '/v1/iam/roles', { as, tenant: GLOBEX, body: { name: 'theirs-only', permissions: [] } });
    const given = await changeThem({ action: 'add_role', role: 'theirs-only', ids }, { as });
    expect(outcomes(given)).toEqual([
      [there.id, 'changed'],
      [missing, 'not_found'],
      [here.id, 'rejected'],
      [own.id, 'rejected'],
    ]);
    const alone = { action: 'add_role', role: 'theirs-only', ids: [here.id] };
    expect(outcome(await changeThem(alone, { as }))).toBe('422 invalid_field');

    expect(outcomes(await changeThem(deactivate, { as }))).toEqual([
      [there.id, 'changed'],
      [missing, 'not_found'],
      [here.id, 'changed'],
      [own.id, 'changed'],
    ]);
    for (const { token } of [here, there, own])
      expect(outcome(await h.api('GET', '/v1/auth/me', { as: token }))).toBe('401 invalid_credential');
    const tenants = (await h.audit('user.deactivate')).slice(-3).map((row) => [row['target_id'], row['tenant_id']]);
    expect(tenants).toEqual(
      expect.arrayContaining([
        [there.id, GLOBEX],
        [here.id, ACME],
        [own.id, 'default'],
      ]),
    );
  });

  test.each([
    ['its session', { action: 'deactivate' }],
    ['its role', { action: 'remove_role', role: 'admin' }],
  ])('by id reaches users of other tenants also if the caller loses %s by the same request', async (_name, change) => {
    const leaving = await h.person(ACME, ['admin']);
    const there = await h.person(GLOBEX, ['admin']);
    const reply = await changeThem({ ...change, ids: [leaving.id, there.id] }, { as: leaving.token });
    expect([outcome(reply), reply.json['changed']]).toEqual(['200', 2]);
    expect(outcomes(reply)).toEqual([
      [leaving.id, 'changed'],
      [there.id, 'changed'],
    ]);
  });

  test('by a filter adds and removes a role of the users that match, and never changes the caller', async () => {
    const tenant = unique('several');
    await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id: tenant, name: tenant } });
    const chief = await h.person(tenant, ['tenant-admin']);
    const [one, two] = [await h.person(tenant, []), await h.person(tenant, ['auditor'])];
    const act = (body: object) => changeThem(body, { as: chief.token });
    const rolesOf = async ({ id }: Person) => (await h.api('GET', `${USERS}/${id}`, { as: chief.token })).json['roles'];
    expect(outcomes(await act({ action: 'add_role', role: 'auditor', filter: {} }))).toEqual([[one.id, 'changed']]);
    expect([await rolesOf(one), await rolesOf(chief)]).toEqual([['auditor'], ['tenant-admin']]);
    expect((await act({ action: 'add_role', role: 'auditor', filter: {} })).json['data']).toEqual([]);
    const removed = await act({ action: 'remove_role', role: 'auditor', filter: { q: two.id } });
    expect([outcomes(removed), await rolesOf(two)]).toEqual([[[two.id, 'changed']], []]);
    expect(outcomes(await act({ action: 'deactivate', filter: { status: 'active' } }))).toEqual([
      [two.id, 'changed'],
      [one.id, 'changed'],
    ]);
    expect(outcome(await h.api('GET', '/v1/auth/me', { as: chief.token }))).toBe('200');
  });

  test('rejects a role that the caller must not give, and each user whose permissions the caller lacks', async () => {
    const clerk = await h.person(ACME, ['user-clerk']);
    await h.api('POST', '/v1/iam/roles', {
      as: h.root.token,
      tenant: ACME,
      body: { name: 'user-clerk', permissions: ['admin:users'] },
    });
    const [plain, strong] = [await h.person(ACME, []), await h.person(ACME, ['tenant-admin'])];
    await h.api('PUT', `${USERS}/${clerk.id}`, { as: h.root.token, tenant: ACME, body: { roles: ['user-clerk'] } });
    const as = clerk.token;
    const body = { action: 'deactivate', ids: [plain.id, strong.id] };
    const reply = await changeThem(body, { as });
    expect(rows(reply)).toMatchObject([
      { id: plain.id, outcome: 'changed' },
      { id: strong.id, outcome: 'rejected', code: 'escalation' },
    ]);
    expect((await userOf(strong))['status']).toBe('active');
    const given = await changeThem({ action: 'add_role', role: 'tenant-admin', ids: [plain.id] }, { as });
    expect(outcome(given)).toBe('403 escalation');
    const refused = (await h.audit('user.deactivate')).filter((row) => row['target_id'] === strong.id);
    expect(refused.map((row) => row['result'])).toEqual(['refused']);
  });

  test.each([
    ['without ids and filter', { action: 'deactivate' }],
    ['with both', { action: 'deactivate', ids: ['usr_x'], filter: {} }],
    ['without a role', { action: 'add_role', ids: ['usr_x'] }],
    ['with a role for a deactivation', { action: 'deactivate', role: 'auditor', filter: {} }],
    ['with an unknown role', { action: 'add_role', role: 'no-such-role', filter: {} }],
    ['with an unknown action', { action: 'delete', filter: {} }],
  ])('is 422 %s', async (_name, body) => {
    expect(outcome(await changeThem(body))).toBe('422 invalid_field');
  });
});

describe('changing a user', () => {
  test('touches the members that are present and no other', async () => {
    const { json } = await create({ department: 'Sales', roles: ['analyst'] });
    const path = `${USERS}/${text(json, 'id')}`;
    const put = async (body: object) => (await h.api('PUT', path, { as: boss.token, body })).json;
    expect(await put({ name: 'New' })).toMatchObject({ name: 'New', department: 'Sales', roles: ['analyst'], email });
    expect(await put({ department: null })).toMatchObject({ name: 'New', department: null });
    expect(await put({ roles: [] })).toMatchObject({ roles: [] });
    expect(await put({})).toMatchObject({ name: 'New', email });
  });

  test('roles of the directory are shown apart and stay when others are given by hand', async () => {
    const someone = await h.person(ACME, ['analyst'], 'ldap');
    await h.db.knex.raw(`insert into user_roles (user_id, role_name, source) values (?, 'auditor', 'directory')`, [
      someone.id,
    ]);
    const reply = await h.api('PUT', `${USERS}/${someone.id}`, { as: boss.token, body: { roles: ['developer'] } });
    expect(reply.json).toMatchObject({ roles: ['developer'], directory_roles: ['auditor'] });
  });

  test('changed email address and name of a directory user are rejected with their paths; unchanged ones are accepted', async () => {
    const someone = await h.person(ACME, [], 'ldap');
    const path = `${USERS}/${someone.id}`;
    const { json } = await h.api('GET', path, { as: boss.token });
    const refused = await h.api('PUT', path, { as: boss.token, body: { email: 'other@example.test', name: 'Other' } });
    expect([outcome(refused), refused.json['errors']]).toMatchObject([
      '422 invalid_field',
      [{ path: '/email' }, { path: '/name' }],
    ]);
    const body = { email: json['email'], name: json['name'], department: 'Research' };
    expect((await h.api('PUT', path, { as: boss.token, body })).json).toMatchObject({ ...body, source: 'ldap' });
  });

  test('another role or email address ends the unused one-time token; a change without one does not', async () => {
    const reset = (token: string) =>
      h.api('POST', '/v1/auth/password/reset', { body: { token, new_password: 'a long enough password 17' } });
    const [kept, lost, misaddressed] = [
      await create({ roles: ['analyst'] }),
      await create({ email: `lost-${email}`, roles: ['analyst'] }),
      await create({ email: `typo-${email}`, roles: ['analyst'] }),
    ];
    const change = (made: typeof kept, body: object) =>
      h.api('PUT', `${USERS}/${text(made.json, 'id')}`, { as: h.root.token, tenant: ACME, body });
    const same = { email: text(kept.json, 'email').toUpperCase(), name: 'Renamed', roles: ['analyst'] };
    expect(outcome(await change(kept, same))).toBe('200');
    expect(outcome(await change(lost, { roles: ['analyst', 'developer'] }))).toBe('200');
    expect(outcome(await reset(text(kept.json, 'password_setup_token')))).toBe('204');
    expect(outcome(await reset(text(lost.json, 'password_setup_token')))).toBe('401 invalid_credential');
    expect(outcome(await change(misaddressed, { email: `right-${email}` }))).toBe('200');
    expect(outcome(await reset(text(misaddressed.json, 'password_setup_token')))).toBe('401 invalid_credential');
  });

  test('the removal of a role takes effect at once', async () => {
    const someone = await h.person(ACME, ['tenant-admin']);
    expect(outcome(await h.api('GET', USERS, { as: someone.token }))).toBe('200');
    await h.api('PUT', `${USERS}/${someone.id}`, { as: boss.token, body: { roles: [] } });
    expect(outcome(await h.api('GET', USERS, { as: someone.token }))).toBe('403 insufficient_permission');
  });
});

describe('deactivating and deleting', () => {
  const keyOf = async (owner: Person) => {
    const body = { description: 'k', scopes: ['chat:write'], expires_in_days: 1 };
    return h.api('POST', '/v1/iam/api-keys', { as: owner.token, body });
  };
  const proves = async (as: string) => outcome(await h.api('GET', USERS, { as }));

  test('deactivating ends sessions permanently and disables keys until activation', async () => {
    const someone = await h.person(ACME, ['developer']);
    const key = text((await keyOf(someone)).json, 'key');
    expect([await proves(someone.token), await proves(key)]).toEqual([
      '403 insufficient_permission',
      '403 insufficient_permission',
    ]);
    const gone = await h.api('POST', `${USERS}/${someone.id}/deactivate`, { as: boss.token });
    expect([outcome(gone), gone.json['status']]).toEqual(['200', 'deactivated']);
    expect([await proves(someone.token), await proves(key)]).toEqual([
      '401 invalid_credential',
      '401 invalid_credential',
    ]);
    const back = await h.api('POST', `${USERS}/${someone.id}/activate`, { as: boss.token });
    expect([outcome(back), back.json['status']]).toEqual(['200', 'active']);
    expect([await proves(someone.token), await proves(key)]).toEqual([
      '401 invalid_credential',
      '403 insufficient_permission',
    ]);
  });

  test('activating counts against max_users', async () => {
    const tenant = unique('full');
    await h.api('POST', '/v1/iam/tenants', {
      as: h.root.token,
      body: { id: tenant, name: 'Full', quotas: { max_users: 1 } },
    });
    const one = await h.person(tenant, []);
    const call = { as: h.root.token, tenant };
    await h.api('POST', `${USERS}/${one.id}/deactivate`, call);
    await h.person(tenant, []);
    expect(outcome(await h.api('POST', `${USERS}/${one.id}/activate`, call))).toBe('409 quota_exceeded');
  });

  test('deleting revokes the keys, ends the sessions and frees the email address', async () => {
    const made = await create({ roles: ['developer'] });
    const someone = await h.person(ACME, ['developer']);
    const issued = await keyOf(someone);
    expect(outcome(await h.api('DELETE', `${USERS}/${someone.id}`, { as: boss.token }))).toBe('204');
    expect([await proves(someone.token), await proves(text(issued.json, 'key'))]).toEqual([
      '401 invalid_credential',
      '401 invalid_credential',
    ]);
    expect((await h.api('GET', `/v1/iam/api-keys/${text(issued.json, 'id')}`, { as: boss.token })).json['status']).toBe(
      'revoked',
    );
    await h.api('DELETE', `${USERS}/${text(made.json, 'id')}`, { as: boss.token });
    expect(outcome(await create({}))).toBe('201');
  });

  test('an expired key of a deleted user is neither prolonged nor rotated, disabled or enabled', async () => {
    const someone = await h.person(ACME, ['developer']);
    const id = text((await keyOf(someone)).json, 'id');
    const change = (method: string, action: string, body: object = {}) =>
      h.api(method, `/v1/iam/api-keys/${id}${action}`, { as: boss.token, body });
    await h.db.knex('api_keys').where({ id }).update({ expires_at: new Date() });
    expect(outcome(await change('PUT', '', { name: 'before' }))).toBe('200');
    expect(outcome(await h.api('DELETE', `${USERS}/${someone.id}`, { as: boss.token }))).toBe('204');
    const changes = [
      await change('PUT', '', { expires_in_days: 30 }),
      await change('POST', '/rotate'),
      await change('POST', '/disable'),
      await change('POST', '/enable'),
    ];
    expect(changes.map(outcome)).toEqual(Array(4).fill('409 revoked'));
    expect(outcome(await h.api('DELETE', `/v1/iam/api-keys/${id}`, { as: boss.token }))).toBe('204');
  });

  test('ending the sessions of a user leaves the keys unchanged', async () => {
    const someone = await h.person(ACME, ['developer']);
    const key = text((await keyOf(someone)).json, 'key');
    const reply = await h.api('DELETE', `${USERS}/${someone.id}/sessions`, { as: boss.token });
    expect([outcome(reply), reply.json['id']]).toEqual(['200', someone.id]);
    expect([await proves(someone.token), await proves(key)]).toEqual([
      '401 invalid_credential',
      '403 insufficient_permission',
    ]);
  });

  test('a password reset gives a token that ends, and none for users of a directory', async () => {
    const someone = await h.person(ACME, []);
    const reply = await h.api('POST', `${USERS}/${someone.id}/password-reset`, { as: boss.token });
    expect([outcome(reply), reply.json]).toEqual([
      '200',
      { password_setup_token: expect.any(String), expires_at: expect.any(String) },
    ]);
    expect(Date.parse(text(reply.json, 'expires_at'))).toBeGreaterThan(Date.now());
    const listed = await h.person(ACME, [], 'ldap');
    expect(outcome(await h.api('POST', `${USERS}/${listed.id}/password-reset`, { as: boss.token }))).toBe(
      '422 invalid_field',
    );
  });
});
