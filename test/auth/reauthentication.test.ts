/**
 * A stolen access token, or a leaked key, changes nothing that outlives it: its user's email address and password need
 * the current password.
 */

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { UserId } from '../../src/domain/ids.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { addKey, addPerson, auditOf, clear, everythingStored, PASSWORD } from './people.ts';
import { bearer, fromAddress, type Reply, type Stand, startStand } from './stand.ts';

const ADA = 'ada@example.com';
const NEW = 'a sunny afternoon in Lisbon';
const WRONG = 'not the current password';

let database: FreshDatabase;
let stand: Stand;
let ada: UserId;
let path: string;

beforeAll(async () => {
  database = await freshDatabase();
  stand = await startStand(database.url, { login: { failuresPerAccount: 3 } });
});
beforeEach(async () => {
  ada = await addPerson(stand.db, { email: ADA, roles: ['admin'] });
  path = `/v1/iam/users/${ada}`;
});
afterEach(async () => {
  await clear(database.db);
  await stand.parts.feed.catchUp();
});
afterAll(async () => {
  await stand?.close();
  await database?.close();
});

type Headers = Readonly<Record<string, string>>;

const outcome = ({ status, json }: Reply): string =>
  status < 300 ? String(status) : `${status} ${String(json['code'])}`;
const logIn = (email = ADA, password = PASSWORD, headers: Headers = {}): Promise<Reply> =>
  stand.post('/v1/auth/login', { email, password }, headers);
const ask = (as: Headers, action: string, body?: object): Promise<Reply> => stand.post(`${path}${action}`, body, as);
const change = (as: Headers, body: object, to = path): Promise<Reply> => stand.put(to, body, as);

const REFUSED = '403 reauthentication_required';

describe('a caller that changes its own email address', () => {
  test('is refused without its current password, and with a wrong one', async () => {
    const as = bearer(await logIn());
    const without = await change(as, { email: 'thief@example.com' });
    expect([outcome(without), without.json['errors']]).toEqual([
      REFUSED,
      [{ path: '/current_password', message: expect.any(String) }],
    ]);
    expect(outcome(await change(as, { email: 'thief@example.com', current_password: WRONG }))).toBe(REFUSED);
    expect(outcome(await change(as, { email: 'thief@example.com', current_password: '' }))).toBe(REFUSED);
    expect((await stand.get(path, as)).json['email']).toBe(ADA);
  });

  test('changes it with the current password, which is kept nowhere', async () => {
    const as = bearer(await logIn());
    expect(outcome(await change(as, { email: 'ada@acme.example', current_password: PASSWORD }))).toBe('200');
    expect(outcome(await logIn('ada@acme.example'))).toBe('200');
    expect(await everythingStored(stand.db)).not.toContain(PASSWORD);
  });

  test('changes its other members without it, and repeats the address that it has', async () => {
    const as = bearer(await logIn());
    expect(outcome(await change(as, { name: 'Ada', email: 'ADA@example.com', department: 'Research' }))).toBe('200');
  });
});

describe('a caller that resets its own password', () => {
  test('needs the current password', async () => {
    const as = bearer(await logIn());
    expect(outcome(await ask(as, '/password-reset'))).toBe(REFUSED);
    expect(outcome(await ask(as, '/password-reset', { current_password: WRONG }))).toBe(REFUSED);
    const reset = await ask(as, '/password-reset', { current_password: PASSWORD });
    expect(outcome(reset)).toBe('200');
    const token = reset.json['password_setup_token'];
    expect(outcome(await stand.post('/v1/auth/password/reset', { token, new_password: NEW }))).toBe('204');
  });

  test('gets no second proof from a password that was changed while it was checked', async () => {
    const as = bearer(await logIn());
    const [changed] = await Promise.all([
      stand.post('/v1/auth/password', { old_password: PASSWORD, new_password: NEW }, as),
      ...Array.from({ length: 2 }, () => ask(as, '/password-reset', { current_password: PASSWORD })),
    ]);
    expect(outcome(changed)).toBe('204');
    const { rows } = await stand.db.knex.raw<{ rows: unknown[] }>('select 1 from one_time_tokens where user_id = ?', [
      ada,
    ]);
    expect(rows).toEqual([]);
    expect(outcome(await ask(as, '/password-reset', { current_password: PASSWORD }))).toBe(REFUSED);
  });
});

describe('wrong current passwords', () => {
  test('count like failed logins, and the right one is refused beyond the limit', async () => {
    const as = bearer(await logIn());
    expect(outcome(await change(as, { email: 'b@example.com', current_password: WRONG }))).toBe(REFUSED);
    expect(outcome(await ask(as, '/password-reset', { current_password: WRONG }))).toBe(REFUSED);
    expect(outcome(await logIn(ADA, WRONG))).toBe('401 invalid_credential');
    expect(outcome(await ask(as, '/password-reset', { current_password: PASSWORD }))).toBe('429 too_many_attempts');
    expect(outcome(await logIn())).toBe('429 too_many_attempts');
    const failures = (await auditOf(stand.db)).filter(({ action }) => action === 'auth.reauthenticate');
    expect(failures).toEqual(Array(2).fill(expect.objectContaining({ actor: ada, target: ada, result: 'failure' })));
  });

  test('are not given back by the caller itself: another administrator unlocks the account', async () => {
    const as = bearer(await logIn());
    const key = { authorization: `Bearer ${await addKey(stand.db, ada)}` };
    for (let i = 0; i < 3; i++) await ask(as, '/password-reset', { current_password: WRONG });
    expect(outcome(await ask(as, '/unlock'))).toBe(REFUSED);
    expect(outcome(await ask(key, '/unlock'))).toBe(REFUSED);
    expect(outcome(await ask(as, '/password-reset', { current_password: PASSWORD }))).toBe('429 too_many_attempts');
    await addPerson(stand.db, { email: 'bob@example.com', roles: ['admin'] });
    const other = bearer(await logIn('bob@example.com', PASSWORD, fromAddress('198.51.100.7')));
    expect(outcome(await ask(other, '/unlock'))).toBe('200');
    expect(outcome(await ask(as, '/password-reset', { current_password: PASSWORD }))).toBe('200');
  });

  test('are forgotten after the right one', async () => {
    const as = bearer(await logIn());
    for (let i = 0; i < 5; i++) {
      expect(outcome(await ask(as, '/password-reset', { current_password: WRONG }))).toBe(REFUSED);
      expect(outcome(await ask(as, '/password-reset', { current_password: PASSWORD }))).toBe('200');
    }
  });
});

test("a key changes neither its owner's email address nor the password, even with the current password", async () => {
  const owner = await addPerson(stand.db, { email: 'bob@example.com', roles: ['tenant-admin'] });
  path = `/v1/iam/users/${owner}`;
  const key = { authorization: `Bearer ${await addKey(stand.db, owner)}` };
  for (const proof of [{}, { current_password: PASSWORD }]) {
    expect(outcome(await change(key, { email: 'thief@example.com', ...proof }))).toBe(REFUSED);
    expect(outcome(await ask(key, '/password-reset', proof))).toBe(REFUSED);
  }
  expect(outcome(await change(key, { department: 'Research' }))).toBe('200');
});

test('an administrator changes the email address and resets the password of another user without a password', async () => {
  const as = bearer(await logIn());
  const bob = `/v1/iam/users/${await addPerson(stand.db, { email: 'bob@example.com', tenant: 'default' })}`;
  expect(outcome(await change(as, { email: 'robert@example.com' }, bob))).toBe('200');
  expect(outcome(await stand.post(`${bob}/password-reset`, undefined, as))).toBe('200');
});

test('a user without a password proves nothing with an empty one', async () => {
  const as = bearer(await logIn());
  await stand.db.knex('users').where({ id: ada }).update({ password_hash: null });
  expect(outcome(await ask(as, '/password-reset', { current_password: '' }))).toBe(REFUSED);
});
