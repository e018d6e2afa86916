/** Locks of users by failed logins: shown, listed, and taken away by an administrator. */

import { describe, expect, test } from 'vitest';
import { column, type Harness, it, outcome, type Person, rows, text, unique } from './harness.ts';

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
const PASSWORD = 'violet anchors drift slowly';
const WINDOW_MS = 15 * 60 * 1000;
const FAILURES = 10;
let n = 0;

interface Made {
  readonly id: string;
  readonly email: string;
  readonly path: string;
}

async function makeUser(tenant = ACME, roles: readonly string[] = []): Promise<Made> {
  const email = `locked-${++n}@example.test`;
  const reply = await h.api('POST', USERS, {
    as: h.root.token,
    tenant,
    body: { email, name: `Locked ${n}`, password: PASSWORD, roles },
  });
  const id = text(reply.json, 'id');
  return { id, email, path: `${USERS}/${id}` };
}

const login = async (email: string, password: string) =>
  outcome(await h.api('POST', '/v1/auth/login', { body: { email, password } }));
const show = async ({ path }: Made) => (await h.api('GET', path, { as: h.root.token, tenant: ACME })).json;

/** Addresses have a limit too, and all tests use one address. */
async function forgetAddresses(): Promise<void> {
  await h.db.query({ text: `delete from login_failures where scope = 'address'` });
}

async function fail(email: string, times: number): Promise<void> {
  await forgetAddresses();
  for (let i = 0; i < times; i++) expect(await login(email, 'wrong')).toBe('401 invalid_credential');
}

describe('locked_until', () => {
  test('is null until the failures reach the limit, then the end of their window', async () => {
    const user = await makeUser();
    const from = Date.now();
    await fail(user.email, FAILURES - 1);
    expect(await show(user)).toMatchObject({ locked_until: null });
    await fail(user.email, 1);
    const until = Date.parse(text(await show(user), 'locked_until'));
    expect(until).toBeGreaterThanOrEqual(from + WINDOW_MS - 1000);
    expect(until).toBeLessThanOrEqual(Date.now() + WINDOW_MS);
    expect(await login(user.email, PASSWORD)).toBe('429 too_many_attempts');
  });

  test('is null after the window', async () => {
    const user = await makeUser();
    await fail(user.email, FAILURES);
    await h.db.query({
      text: `update login_failures set window_start = window_start - interval '15 minutes', locked_until = locked_until - interval '15 minutes'`,
    });
    expect(await show(user)).toMatchObject({ locked_until: null });
    await fail(user.email, 1);
    expect(await show(user)).toMatchObject({ locked_until: null });
    expect(await login(user.email, PASSWORD)).toBe('200');
  });

  test('is null after a login that succeeds as the last attempt of the window', async () => {
    const user = await makeUser();
    await fail(user.email, FAILURES - 1);
    expect(await login(user.email, PASSWORD)).toBe('200');
    expect(await show(user)).toMatchObject({ locked_until: null });
  });

  test('and last_login_at leave the state of the ETag as it is', async () => {
    const user = await makeUser();
    const { etag } = (await h.api('GET', user.path, { as: boss.token })).headers;
    await login(user.email, PASSWORD);
    await fail(user.email, FAILURES);
    const headers = { 'if-match': String(etag) };
    expect(outcome(await h.api('PUT', user.path, { as: boss.token, headers, body: { department: 'Research' } }))).toBe(
      '200',
    );
  });
});

test('last_login_at is the last login, and survives the end of its session', async () => {
  const user = await makeUser();
  expect(await show(user)).toMatchObject({ last_login_at: null });
  const from = Date.now();
  expect(await login(user.email, PASSWORD)).toBe('200');
  const first = Date.parse(text(await show(user), 'last_login_at'));
  expect(first).toBeGreaterThanOrEqual(from - 1000);
  expect(await login(user.email, PASSWORD)).toBe('200');
  await h.db.query({ text: 'delete from sessions where user_id = $1', values: [user.id] });
  expect(Date.parse(text(await show(user), 'last_login_at'))).toBeGreaterThan(first);
});

describe('unlocking', () => {
  const unlock = (path: string, as: string, tenant?: string) =>
    h.api('POST', `${path}/unlock`, { as, ...(tenant === undefined ? {} : { tenant }) });

  test('lets the user log in again, answers with the user, and is in the audit log', async () => {
    const user = await makeUser();
    await fail(user.email, FAILURES);
    const { locked_until: until } = await show(user);
    const reply = await unlock(user.path, boss.token);
    expect(outcome(reply)).toBe('200');
    expect(reply.json).toEqual(await show(user));
    expect(reply.json).toMatchObject({ id: user.id, locked_until: null });
    const row = (await h.audit('user.unlock')).at(-1);
    expect(row).toMatchObject({
      target_id: user.id,
      actor_id: boss.id,
      before: { locked_until: until },
      after: { locked_until: null },
    });
    expect(await login(user.email, PASSWORD)).toBe('200');
  });

  test('forgets failures below the limit too, and no other account', async () => {
    const [user, other] = [await makeUser(), await makeUser()];
    await fail(other.email, FAILURES);
    await fail(user.email, FAILURES - 1);
    expect(outcome(await unlock(user.path, boss.token))).toBe('200');
    await fail(user.email, FAILURES - 1);
    expect(await show(user)).toMatchObject({ locked_until: null });
    expect(await show(other)).toMatchObject({ locked_until: expect.any(String) });
  });

  test('of an unknown user, or one of another tenant, answers 404 alike', async () => {
    const theirs = await makeUser(GLOBEX);
    const replies = [`${USERS}/usr_00000000000000000000000000`, `${USERS}/none`, theirs.path].map((path) =>
      unlock(path, boss.token),
    );
    for (const reply of await Promise.all(replies)) expect(outcome(reply)).toBe('404 not_found');
  });

  test('of a stronger user is an escalation, and the user stays locked', async () => {
    const strong = await makeUser(ACME, ['admin']);
    await fail(strong.email, FAILURES);
    expect(outcome(await unlock(strong.path, boss.token))).toBe('403 escalation');
    expect(await show(strong)).toMatchObject({ locked_until: expect.any(String) });
    expect(outcome(await unlock(strong.path, h.root.token, ACME))).toBe('200');
  });

  test('needs admin:users', async () => {
    const user = await makeUser();
    const nobody = await h.person(ACME, ['developer']);
    expect(outcome(await unlock(user.path, nobody.token))).toBe('403 insufficient_permission');
  });
});

describe('lists of users that need care', () => {
  test('locked=true shows exactly the locked ones, of one tenant or of all', async () => {
    await h.db.query({ text: 'delete from login_failures' });
    const [ours, theirs, calm] = [await makeUser(), await makeUser(GLOBEX), await makeUser()];
    await fail(ours.email, FAILURES);
    await fail(theirs.email, FAILURES);
    await fail(calm.email, 1);
    const listed = async (query: string) =>
      column(await h.api('GET', `${USERS}?locked=true${query}`, { as: h.root.token }), 'id');
    expect(await listed(`&tenant_id=${ACME}`)).toEqual([ours.id]);
    expect(await listed('&tenant_id=*')).toEqual([theirs.id, ours.id]);
    expect(await listed('&tenant_id=*&limit=1')).toEqual([theirs.id]);
    expect(
      await listed(`&tenant_id=*&q=${encodeURIComponent(theirs.email.slice(0, 9))}&email=${theirs.email}`),
    ).toEqual([theirs.id]);
    expect(await listed(`&tenant_id=${ACME}&role=developer`)).toEqual([]);
    await h.api('POST', `${ours.path}/unlock`, { as: boss.token });
    expect(await listed(`&tenant_id=${ACME}`)).toEqual([]);
  });

  test('filters of directories show its users by state and by conflict', async () => {
    const made = await Promise.all(['removed', 'active', 'conflict'].map(() => h.person(ACME, ['developer'], 'ldap')));
    const [removed, active, conflict] = made.map(({ id }) => id);
    await h.db.query({
      text: `update users set directory = 'corp', directory_id = id, email = null,
          directory_suspension = case when id = $1 then 'removed' end, directory_suspended_at = case when id = $1 then now() end,
          email_conflict = case when id = $2 then 'taken@example.test' end
        where id = any($3::text[])`,
      values: [removed, conflict, made.map(({ id }) => id)],
    });
    const listed = async (query: string) => column(await h.api('GET', `${USERS}?${query}`, { as: boss.token }), 'id');
    expect(await listed('directory_status=removed')).toEqual([removed]);
    expect(await listed('directory_status=disabled')).toEqual([]);
    const actives = new Set([active, conflict]);
    expect(new Set(await listed('directory_status=active'))).toEqual(actives);
    expect(new Set(await listed('directory_status=active&role=developer'))).toEqual(actives);
    expect(await listed('directory_status=active&role=analyst')).toEqual([]);
    expect(await listed(`directory_status=active&q=${active}`)).toEqual([active]);
    expect(await listed(`directory_status=active&role=developer&q=${active}`)).toEqual([active]);
    expect(await listed('email_conflict=true')).toEqual([conflict]);
    expect(await listed('email_conflict=true&directory_status=removed')).toEqual([]);
  });

  test.each(['locked=false', 'email_conflict=false', 'directory_status=gone', 'locked=1'])(
    '%s is malformed',
    async (query) => {
      expect(outcome(await h.api('GET', `${USERS}?${query}`, { as: boss.token }))).toBe('400 invalid_parameter');
    },
  );

  test('a list shows what a single answer shows', async () => {
    const user = await makeUser();
    await fail(user.email, FAILURES);
    const listed = rows(await h.api('GET', `${USERS}?email=${user.email}`, { as: boss.token }));
    expect(listed).toEqual([await show(user)]);
  });
});
