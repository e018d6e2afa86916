/** The end of the sessions of an issuer that has very many: at once for all of them, and in batches in the store. */

import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { DELETED_ROLES_UPKEEP, tidyUp } from '../../src/iam/auth/upkeep.ts';
import { transaction } from '../../src/store/transaction.ts';
import { PATIENT } from '../support/database.ts';
import { type Harness, outcome, type Person, rows, startHarness, unique } from './harness.ts';
import { type StoredTestIssuer, storeIssuer } from './stored-issuers.ts';

const MANY = 100_000;
/** More than two transactions end. */
const SOME = 2_500;
const ISSUERS = '/v1/iam/issuers';

let h: Harness;
beforeAll(async () => {
  h = await startHarness();
});
afterAll(() => h?.close());

let tenant = '';
let issuer: StoredTestIssuer;
/** Its session began with a token of the issuer, and that of `other` with a password. */
let ours: Person;
let other: Person;
beforeEach(async () => {
  tenant = unique('acme');
  await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id: tenant, name: tenant } });
  issuer = await storeIssuer(h.db, tenant, 'staff', {});
  [ours, other] = [await begun({}), await h.person(tenant, ['tenant-admin'])];
});

/** A session whose row no earlier ending has written, because it is the newest one. */
async function begun(columns: object, of = issuer): Promise<Person> {
  const person = await h.person(tenant, ['tenant-admin']);
  await h.db
    .knex('sessions')
    .where({ user_id: person.id })
    .update({ issuer_id: of.id, ...columns });
  return person;
}

/** Behind the API's back, and without a line in the feed. */
async function makeSessions(count: number): Promise<void> {
  // The server's own statements end after 2 s.
  const patient = h.db.reopen({ ...PATIENT, poolMax: 1 });
  await patient.knex.raw(
    `set session_replication_role = replica;
     insert into sessions (id, user_id, issuer_id, sso_subject, expires_at, created_at)
     select 'ses_${tenant}' || n, 'usr_' || n % 100, '${issuer.id}', 'subject', now() + interval '1 day', now() - interval '1 hour'
     from generate_series(1, ${count}) n`,
  );
  await patient.close();
}

const put = (changes: object) => h.api('PUT', `${ISSUERS}/${issuer.id}`, { as: h.root.token, tenant, body: changes });
const me = async ({ token }: Person) => outcome(await h.api('GET', '/v1/auth/me', { as: token }));
const writes = async ({ token }: Person) =>
  outcome(await h.api('POST', '/v1/iam/roles', { as: token, body: { name: unique('r'), permissions: [] } }));
const listed = async ({ id }: Person) => {
  const reply = await h.api('GET', `/v1/iam/users/${id}/sessions?count=true`, { as: h.root.token, tenant });
  return [rows(reply).length, reply.json['total']];
};
const left = async () => {
  const found = h.db.knex('sessions').where({ issuer_id: issuer.id, ended_at: null });
  return Number((await found.count({ count: '*' }))[0]?.['count']);
};
const endRows = () => tidyUp(h.db, undefined, DELETED_ROLES_UPKEEP);

test.each([
  ['disabling it', () => put({ enabled: false })],
  [
    'revoke-before',
    () => h.api('POST', `${ISSUERS}/${issuer.id}/revoke-before`, { as: h.root.token, tenant, body: {} }),
  ],
  ['deleting it', () => h.api('DELETE', `${ISSUERS}/${issuer.id}`, { as: h.root.token, tenant })],
])('the 100,000 sessions of an issuer end at once by %s, and a later one does not', async (_name, end) => {
  await makeSessions(MANY);
  expect([await me(ours), await writes(ours), await listed(ours)]).toEqual(['200', '201', [1, 1]]);
  expect(outcome(await end())).toMatch(/^20[04]$/);
  expect(await left()).toBeGreaterThan(MANY - 2_000);
  expect([await me(ours), await writes(ours), await listed(ours)]).toEqual([
    '401 invalid_credential',
    '401 invalid_credential',
    [0, 0],
  ]);
  expect([await me(other), await listed(other)]).toEqual(['200', [1, 1]]);
  expect(await me(await begun({}))).toBe('200');
  await h.db.knex.raw('truncate ended_issuer_sessions');
});

test.each([
  ['users', { users: null, sso: null }, ['401 invalid_credential', '401 invalid_credential']],
  ['logins', { sso: null }, ['200', '401 invalid_credential']],
])('only the sessions of %s end, also beyond those that one transaction ends', async (_which, changes, ended) => {
  await put({ sso: { client_id: 'console', label: 'Log in' } });
  await makeSessions(SOME);
  const login = await begun({ sso_subject: 'subject' });
  expect([await me(ours), await me(login)]).toEqual(['200', '200']);
  expect(outcome(await put(changes))).toBe('200');
  expect([await me(ours), await me(login)]).toEqual(ended);
  await endRows();
  expect([await me(ours), await me(login)]).toEqual(ended);
});

test('the upkeep ends the rows of these sessions, and of no later one', async () => {
  await makeSessions(SOME);
  await put({ enabled: false });
  await put({ enabled: true });
  const later = await begun({});
  // Each change ends the rows of 1,000. The last one is that of the name.
  expect(await left()).toBe(SOME + 2 - 2_000);
  expect(await endRows()).toBe(SOME + 1 - 2_000 + 1);
  expect([await endRows(), await left(), await me(later), await me(ours)]).toEqual([
    0,
    1,
    '200',
    '401 invalid_credential',
  ]);
  expect(await h.db.knex('ended_issuer_sessions')).toEqual([]);
});

test('a refresh token of such a session is refused before the row of the session is written', async () => {
  const password = unique('a password of a test');
  const email = `${unique('ada')}@example.test`;
  const user = { email, name: 'Ada', password, roles: [], tenant_id: tenant };
  await h.api('POST', '/v1/iam/users', { as: h.root.token, tenant, body: user });
  const login = async () => (await h.api('POST', '/v1/auth/login', { body: { email, password } })).json;
  const refreshed = async (token: unknown) =>
    outcome(await h.api('POST', '/v1/auth/refresh', { body: { refresh_token: token } }));
  const first = await login();
  await h.db.knex.raw('update sessions set issuer_id = ? where user_id = (select id from users where email = ?)', [
    issuer.id,
    email,
  ]);
  await makeSessions(SOME);
  await put({ enabled: false });
  expect([await refreshed(first['refresh_token']), await refreshed((await login())['refresh_token'])]).toEqual([
    '401 invalid_credential',
    '200',
  ]);
  await endRows();
});

test('a session whose row is locked ends with a later batch, and is over until then', async () => {
  await makeSessions(SOME);
  await put({ enabled: false });
  await transaction(h.db, async (trx) => {
    const { rows: held } = await trx.raw<{ rows: { id: string }[] }>(
      'select id from sessions where issuer_id = ? and ended_at is null limit 1 for update',
      [issuer.id],
    );
    expect(held).toHaveLength(1);
    expect(await endRows()).toBe(SOME + 1 - 1_000 - 1);
    expect([await left(), await me(ours)]).toEqual([1, '401 invalid_credential']);
  });
  expect(await endRows()).toBe(2);
});
