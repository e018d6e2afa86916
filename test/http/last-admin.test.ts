/** The platform is never without an administrator that can log in. */

import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Harness, outcome, type Person, type Reply, startHarness } from './harness.ts';

let h: Harness;
beforeEach(async () => {
  h = await startHarness();
});
afterEach(async () => {
  await h.close();
});

const USERS = '/v1/iam/users';

async function activeLocalAdmins(): Promise<number> {
  const { rows } = await h.db.knex.raw<{ rows: unknown[] }>(
    `select from users u join user_roles r on r.user_id = u.id
     where r.role_name = 'admin' and r.source = 'manual' and u.source = 'local' and u.status = 'active'`,
  );
  return rows.length;
}

/** How many transactions of this database wait for a row. */
async function waiting(): Promise<number> {
  const { rows } = await h.db.knex.raw<{ rows: { n: number }[] }>(
    `select count(*)::int as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
  );
  return rows[0]?.n ?? 0;
}

test('the last one is neither deactivated, deleted nor stripped; those of a directory or an issuer do not count', async () => {
  // They cannot log in when the directory or the issuer is away.
  await h.person('default', ['admin'], 'ldap');
  const made = await h.person('default', ['admin']);
  await h.db.knex('users').where({ id: made.id }).update({ source: 'issuer:staff' });
  const mapped = await h.person('default', []);
  await h.db.knex('user_roles').insert({ user_id: mapped.id, role_name: 'admin', source: 'issuer:iss_1' });
  const gone = await h.person('default', ['admin']);
  expect(outcome(await h.api('POST', `${USERS}/${gone.id}/deactivate`, { as: h.root.token }))).toBe('200');
  const self = `${USERS}/${h.root.id}`;
  const as = h.root.token;
  expect(outcome(await h.api('PUT', self, { as, body: { roles: ['developer'] } }))).toBe('409 last_admin');
  expect(outcome(await h.api('POST', `${self}/deactivate`, { as }))).toBe('409 last_admin');
  expect(outcome(await h.api('DELETE', self, { as }))).toBe('409 last_admin');
  expect(outcome(await h.api('PUT', self, { as, body: { roles: ['admin', 'developer'], name: 'Still here' } }))).toBe(
    '200',
  );
  expect(await activeLocalAdmins()).toBe(1);
  expect((await h.audit('user.delete')).map((row) => row['result'])).toEqual(['refused']);
});

test('the rejection names the next step of the administrator', async () => {
  const { json } = await h.api('DELETE', `${USERS}/${h.root.id}`, { as: h.root.token });
  expect(json['detail']).toBe(
    'This change would leave no active local administrator who can log in. Create another administrator first, and let that user set a password.',
  );
});

test.each([false, true])(
  'its tenant is not suspended, with force %s, until there is another administrator',
  async (force) => {
    const keeper = await h.person('default', ['admin'], 'ldap');
    await h.api('POST', '/v1/iam/tenants', { as: keeper.token, body: { id: 'acme', name: 'Acme' } });
    const lodger = await h.person('acme', ['admin']);
    const suspend = async ({ token }: Person) =>
      outcome(await h.api('POST', `/v1/iam/tenants/acme/suspend${force ? '?force=true' : ''}`, { as: token }));
    expect(outcome(await h.api('DELETE', `${USERS}/${h.root.id}`, { as: keeper.token }))).toBe('204');
    for (const person of [lodger, keeper]) expect(await suspend(person)).toBe('409 last_admin');
    expect((await h.audit('tenant.suspend')).map((row) => [row['tenant_id'], row['result']])).toEqual([
      ['acme', 'refused'],
      ['acme', 'refused'],
    ]);
    await h.person('default', ['admin']);
    expect(await suspend(lodger)).toBe(force ? '200' : '409 would_lock_out');
  },
);

test('those of suspended tenants do not count, until the tenant is activated', async () => {
  await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id: 'acme', name: 'Acme' } });
  await h.person('acme', ['admin']);
  const as = h.root.token;
  expect(outcome(await h.api('POST', '/v1/iam/tenants/acme/suspend', { as }))).toBe('200');
  const self = `${USERS}/${h.root.id}`;
  expect(outcome(await h.api('PUT', self, { as, body: { roles: [] } }))).toBe('409 last_admin');
  expect(outcome(await h.api('POST', `${self}/deactivate`, { as }))).toBe('409 last_admin');
  expect(outcome(await h.api('DELETE', self, { as }))).toBe('409 last_admin');
  expect(outcome(await h.api('POST', '/v1/iam/tenants/acme/activate', { as }))).toBe('200');
  expect(outcome(await h.api('DELETE', self, { as }))).toBe('204');
});

test('those that never set a password do not count beside one that did', async () => {
  const as = h.root.token;
  await h.db.knex('users').where({ id: h.root.id }).update({ password_hash: 'set' });
  const body = { email: 'next@example.test', name: 'Next', roles: ['admin'] };
  const made = await h.api('POST', USERS, { as, body });
  expect(outcome(await h.api('DELETE', `${USERS}/${h.root.id}`, { as }))).toBe('409 last_admin');
  const setup = { token: made.json['password_setup_token'], new_password: 'violet anchors drift slowly' };
  expect(outcome(await h.api('POST', '/v1/auth/password/reset', { body: setup }))).toBe('204');
  expect(outcome(await h.api('DELETE', `${USERS}/${h.root.id}`, { as }))).toBe('204');
});

const PAIRS = [
  ['deactivate', 'deactivate'],
  ['deactivate', 'strip'],
  ['strip', 'strip'],
  ['delete', 'strip'],
] as const;

function act(how: (typeof PAIRS)[number][number], id: string, as: string) {
  if (how === 'strip') return h.api('PUT', `${USERS}/${id}`, { as, body: { roles: [] } });
  if (how === 'delete') return h.api('DELETE', `${USERS}/${id}`, { as });
  return h.api('POST', `${USERS}/${id}/deactivate`, { as });
}

/** Both requests read the store before either of them may write. */
async function atOnce(ask: () => Promise<Reply>[]): Promise<string[]> {
  let replies: Promise<Reply[]> | undefined;
  await h.db.knex.transaction(async (trx) => {
    await trx.raw('select from users order by id for update');
    replies = Promise.all(ask());
    await expect.poll(waiting, { interval: 10 }).toBe(2);
  });
  return (await replies)?.map(outcome) ?? [];
}

test.each(PAIRS)(
  'when an administrator of a directory does it to the last two at once, one is refused: %s and %s',
  async (...[first, second]) => {
    const other = await h.person('default', ['admin']);
    const { token } = await h.person('default', ['admin'], 'ldap');
    const outcomes = await atOnce(() => [act(first, other.id, token), act(second, h.root.id, token)]);
    expect(outcomes).toContain('409 last_admin');
    expect(outcomes.filter((one) => one.startsWith('2'))).toHaveLength(1);
    expect(await activeLocalAdmins()).toBe(1);
  },
);

test.each(PAIRS)(
  'when two do it to each other at once, the second no longer has the permission: %s and %s',
  async (...[first, second]) => {
    const other = await h.person('default', ['admin']);
    const outcomes = await atOnce(() => [act(first, other.id, h.root.token), act(second, h.root.id, other.token)]);
    expect(outcomes.filter((one) => one.startsWith('2'))).toHaveLength(1);
    expect(outcomes).toContainEqual(expect.stringMatching(/^(401 invalid_credential|403 insufficient_permission)$/));
    expect(await activeLocalAdmins()).toBe(1);
  },
);
