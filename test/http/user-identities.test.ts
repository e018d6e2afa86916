/** Links of users to subjects of issuers, and the roles that issuers give. */

import { randomBytes } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import { makeId } from '../../src/domain/ids.ts';
import { column, type Harness, it, outcome, type Person, text, unique } from './harness.ts';
import { type StoredTestIssuer, storeIssuer } from './stored-issuers.ts';

const ACME = unique('acme');
const GLOBEX = unique('globex');
const USERS = '/v1/iam/users';
const PASSWORD = 'a rainy afternoon in Porto';

let h: Harness;
let boss: Person;
/** Holds admin:users, admin:keys and chat:write. */
let clerk: Person;
/** Proves users, and gives no role. */
let staff: StoredTestIssuer;
/** Gives the role tenant-admin to its group. */
let corporate: StoredTestIssuer;
it.beforeAll(async ({ harness }) => {
  h = harness;
  for (const id of [ACME, GLOBEX]) await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id, name: id } });
  const role = (name: string, permissions: string[]) =>
    h.api('POST', '/v1/iam/roles', { as: h.root.token, tenant: ACME, body: { name, permissions } });
  await role('clerk', ['admin:users', 'admin:keys', 'chat:write']);
  await role('writer', ['chat:write']);
  boss = await h.person(ACME, ['tenant-admin']);
  clerk = await h.person(ACME, ['clerk']);
  staff = await storeIssuer(h.db, ACME, 'staff', {});
  corporate = await storeIssuer(h.db, ACME, 'corporate', { roles: ['tenant-admin'] });
  await storeIssuer(h.db, GLOBEX, 'globex-staff', {});
});

let ada: Person;
let subject = '';
beforeEach(async () => {
  ada = await h.person(ACME, ['writer']);
  subject = unique('subject');
});

const put = (user: Person, body: object, as: Person = boss) =>
  h.api('PUT', `${USERS}/${user.id}`, { as: as.token, body });
const shown = async (user: Person) => (await h.api('GET', `${USERS}/${user.id}`, { as: boss.token })).json;
const give = (user: Person, issuer: StoredTestIssuer, role: string) =>
  h.db.knex('user_roles').insert({ user_id: user.id, role_name: role, source: `issuer:${issuer.id}` });
const linked = async (user: Person, issuer: StoredTestIssuer, role: string) => {
  await h.db.knex('user_identities').insert({ issuer_id: issuer.id, subject: unique('linked'), user_id: user.id });
  await give(user, issuer, role);
};
const session = async (user: Person, columns: object) => {
  const id = makeId('ses', Date.now(), randomBytes(10));
  await h.db
    .knex('sessions')
    .insert({ id, user_id: user.id, expires_at: new Date(Date.now() + 3_600_000), ...columns });
  return id;
};

describe('identities', () => {
  test('are replaced by an update, shown with the names of the issuers, and audited', async () => {
    const identity = { issuer: 'staff', subject };
    const reply = await put(ada, { identities: [identity, { issuer: 'corporate', subject }, identity] });
    expect(outcome(reply)).toBe('200');
    expect(reply.json['identities']).toEqual([{ issuer: 'corporate', subject }, identity]);
    expect(await shown(ada)).toEqual(reply.json);
    expect((await put(ada, { identities: [identity] })).json['identities']).toEqual([identity]);
    expect((await put(ada, { name: 'Ada' })).json['identities']).toEqual([identity]);
    expect((await h.audit('user.update')).at(-2)).toMatchObject({
      before: { identities: [{ issuer: 'corporate', subject }, identity] },
      after: { identities: [identity] },
    });
  });

  test('may be given to a new user', async () => {
    const body = { email: `${subject}@acme.test`, name: 'New', identities: [{ issuer: 'staff', subject }] };
    const reply = await h.api('POST', USERS, { as: boss.token, body });
    expect([outcome(reply), reply.json['identities']]).toEqual(['201', body.identities]);
    expect(outcome(await h.api('POST', USERS, { as: boss.token, body: { ...body, email: 'other@acme.test' } }))).toBe(
      '409 already_exists',
    );
  });

  test('a removed one ends the roles and the sessions that came with it, and no others', async () => {
    await put(ada, {
      identities: [
        { issuer: 'staff', subject },
        { issuer: 'corporate', subject },
      ],
    });
    await give(ada, staff, 'auditor');
    await give(ada, corporate, 'writer');
    const sessions = await Promise.all([
      session(ada, { issuer_id: staff.id }),
      session(ada, { issuer_id: corporate.id }),
      session(ada, {}),
    ]);
    const reply = await put(ada, { identities: [{ issuer: 'corporate', subject }] });
    expect(reply.json).toMatchObject({ roles: ['writer'], issuer_roles: ['writer'] });
    const ended = await Promise.all(sessions.map((id) => h.db.knex('sessions').where({ id }).first('ended_at')));
    expect(ended.map((row) => row?.ended_at !== null)).toEqual([true, false, false]);
  });

  test('each belongs to one user, with any number of requests at once', async () => {
    const bob = await h.person(ACME, []);
    const identities = [{ issuer: 'staff', subject }];
    const replies = await Promise.all([ada, bob, ada, bob].map((user) => put(user, { identities })));
    const outcomes = replies.map(outcome);
    expect(outcomes.filter((one) => one === '200')).toHaveLength(2);
    expect(outcomes.filter((one) => one === '409 already_exists')).toHaveLength(2);
    const [winner, loser] = outcomes[0] === '200' ? [ada, bob] : [bob, ada];
    expect(outcome(await put(winner, { identities: [] }))).toBe('200');
    expect(outcome(await put(loser, { identities }))).toBe('200');
  });

  test.each([
    ['an unknown issuer', [{ issuer: 'unknown', subject: 's' }], '/identities/0/issuer'],
    ['the issuer of another tenant', [{ issuer: 'globex-staff', subject: 's' }], '/identities/0/issuer'],
    ['an empty subject', [{ issuer: 'staff', subject: '' }], '/identities/0/subject'],
    ['no subject', [{ issuer: 'staff' }], '/identities/0/subject'],
    ['a subject of 513 characters', [{ issuer: 'staff', subject: 's'.repeat(513) }], '/identities/0/subject'],
    ['an unpaired surrogate', [{ issuer: 'staff', subject: 'a\ud800' }], '/identities/0/subject'],
    ['21 identities', Array.from({ length: 21 }, (_, i) => ({ issuer: 'staff', subject: `s${i}` })), '/identities'],
  ])('%s is 422 with its path', async (_name, identities, path) => {
    const reply = await put(ada, { identities });
    expect([outcome(reply), reply.json['errors']]).toEqual([
      '422 invalid_field',
      [expect.objectContaining({ path: expect.stringMatching(new RegExp(`^${path}`)) })],
    ]);
  });
});

describe('a caller that links a user', () => {
  test('has what the user has, and what the mapping of the issuer gives', async () => {
    const identities = [{ issuer: 'staff', subject }];
    expect(outcome(await put(boss, { identities }, clerk))).toBe('403 escalation');
    expect(outcome(await put(ada, { identities: [{ issuer: 'corporate', subject }] }, clerk))).toBe('403 escalation');
    expect(outcome(await put(ada, { identities }, clerk))).toBe('200');
    expect(outcome(await put(ada, { identities: [...identities, { issuer: 'corporate', subject }] }))).toBe('200');
    // Of a change, only what it adds counts.
    expect(outcome(await put(ada, { identities: [{ issuer: 'corporate', subject }] }, clerk))).toBe('200');
  });

  const person = async (body: object = {}) => {
    const email = `${unique('self')}@acme.test`;
    const made = await h.api('POST', USERS, {
      as: boss.token,
      body: { email, name: 'Self', roles: ['tenant-admin'], password: PASSWORD, ...body },
    });
    const login = await h.api('POST', '/v1/auth/login', { body: { email, password: PASSWORD } });
    return { id: text(made.json, 'id'), token: text(login.json, 'access_token') };
  };
  const REFUSED = '403 reauthentication_required';

  test('proves itself again to link itself', async () => {
    const self = await person();
    const own = (body: object) => h.api('PUT', `${USERS}/${self.id}`, { as: self.token, body });
    const identities = [{ issuer: 'staff', subject }];
    expect(outcome(await own({ identities }))).toBe(REFUSED);
    expect(outcome(await own({ identities, current_password: 'not the password' }))).toBe(REFUSED);
    expect(outcome(await own({ identities, current_password: PASSWORD }))).toBe('200');
    expect(outcome(await own({ identities, name: 'Same' }))).toBe('200');
    const key = await h.api('POST', '/v1/iam/api-keys', {
      as: self.token,
      body: { description: 'own', scopes: ['admin:users'], expires_in_days: 1, user_id: self.id },
    });
    const more = { identities: [...identities, { issuer: 'staff', subject: `${subject}-2` }] };
    const byKey = { as: text(key.json, 'key'), body: { ...more, current_password: PASSWORD } };
    expect(outcome(await h.api('PUT', `${USERS}/${self.id}`, byKey))).toBe(REFUSED);
    expect(outcome(await own({ identities: [] }))).toBe('200');
  });

  const ofIssuer = async (columns: object): Promise<Person> => {
    const self = await h.person(ACME, ['tenant-admin']);
    await h.db.knex('users').where({ id: self.id }).update({ source: 'issuer:staff' });
    await h.db
      .knex('sessions')
      .where({ user_id: self.id })
      .update({ issuer_id: staff.id, ...columns });
    return self;
  };

  test('without a password, changes its email address after a recent login only, and no key of it does', async () => {
    const recent = await ofIssuer({ sso_subject: 's' });
    const old = await ofIssuer({ sso_subject: 's', created_at: new Date(Date.now() - 301_000) });
    const exchanged = await ofIssuer({});
    const email = () => `${unique('other')}@acme.test`;
    const change = (self: Person) => put(self, { email: email() }, self);
    expect([outcome(await change(old)), outcome(await change(exchanged))]).toEqual([REFUSED, REFUSED]);
    expect(outcome(await put(old, { name: 'Same', email: `${old.id.toUpperCase()}@example.test` }, old))).toBe('200');
    const key = await h.api('POST', '/v1/iam/api-keys', {
      as: recent.token,
      body: { description: 'own', scopes: ['admin:users'], expires_in_days: 1, user_id: recent.id },
    });
    const byKey = { as: text(key.json, 'key'), body: { email: email() } };
    expect(outcome(await h.api('PUT', `${USERS}/${recent.id}`, byKey))).toBe(REFUSED);
    expect(outcome(await change(recent))).toBe('200');
  });

  test.each([
    ['a login at the issuer within 5 minutes', 'issuer:staff', { sso_subject: 's' }, '200'],
    ['an older login', 'issuer:staff', { sso_subject: 's', created_at: new Date(Date.now() - 301_000) }, REFUSED],
    ['an exchanged token', 'issuer:staff', {}, REFUSED],
    ['a login of a user of a directory', 'ldap', { sso_subject: 's' }, REFUSED],
  ])('without a password, proves itself by a recent login: %s', async (_name, source, columns, expected) => {
    const self = await h.person(ACME, ['tenant-admin']);
    await h.db.knex('users').where({ id: self.id }).update({ source });
    await h.db
      .knex('sessions')
      .where({ user_id: self.id })
      .update({ issuer_id: staff.id, ...columns });
    expect(outcome(await put(self, { identities: [{ issuer: 'staff', subject }] }, self))).toBe(expected);
  });
});

describe('roles of issuers', () => {
  test('are shown beside those given by hand, and work', async () => {
    await linked(ada, corporate, 'tenant-admin');
    expect(await shown(ada)).toMatchObject({ roles: ['writer'], directory_roles: [], issuer_roles: ['tenant-admin'] });
    expect(outcome(await h.api('GET', USERS, { as: ada.token }))).toBe('200');
    expect((await h.api('GET', '/v1/auth/me', { as: ada.token })).json['roles']).toEqual(['tenant-admin', 'writer']);
    expect((await put(ada, { roles: [] })).json).toMatchObject({ roles: [], issuer_roles: ['tenant-admin'] });
    expect(outcome(await put(ada, { issuer_roles: [] }))).toBe('422 invalid_field');
  });

  test('a role given by hand and by an issuer is shown in both lists', async () => {
    await linked(ada, staff, 'writer');
    expect(await shown(ada)).toMatchObject({ roles: ['writer'], issuer_roles: ['writer'] });
    const listed = await h.api('GET', `${USERS}?role=writer&limit=200`, { as: boss.token });
    expect(column(listed, 'id').filter((id) => id === ada.id)).toHaveLength(1);
  });

  test('count for every caller that acts on the user or its keys', async () => {
    const bob = await h.person(ACME, ['writer']);
    await linked(ada, corporate, 'tenant-admin');
    const key = await h.api('POST', '/v1/iam/api-keys', {
      as: boss.token,
      body: { description: 'k', scopes: ['chat:write'], expires_in_days: 1, user_id: ada.id },
    });
    const keyPath = `/v1/iam/api-keys/${text(key.json, 'id')}`;
    const outcomes = async (user: Person) =>
      [
        await put(user, { name: 'New' }, clerk),
        await h.api('POST', `${USERS}/${user.id}/password-reset`, { as: clerk.token, body: {} }),
        await h.api('POST', `${USERS}/${user.id}/deactivate`, { as: clerk.token }),
      ].map(outcome);
    expect(await outcomes(ada)).toEqual(Array(3).fill('403 escalation'));
    expect(outcome(await h.api('PUT', keyPath, { as: clerk.token, body: { name: 'k' } }))).toBe('403 escalation');
    expect(await outcomes(bob)).toEqual(['200', '200', '200']);
    const carol = await h.person(ACME, ['writer']);
    const several = { action: 'deactivate', ids: [ada.id, carol.id] };
    const changed = await h.api('POST', `${USERS}/change`, { as: clerk.token, body: several });
    expect(column(changed, 'outcome')).toEqual(['rejected', 'changed']);
  });

  test('a role that only an issuer gives is in use; its forced deletion takes it', async () => {
    const name = unique('mapped');
    const role = { as: boss.token, body: { name, permissions: ['chat:read'] } };
    expect(outcome(await h.api('POST', '/v1/iam/roles', role))).toBe('201');
    await linked(ada, staff, name);
    expect(outcome(await h.api('DELETE', `/v1/iam/roles/${name}`, { as: boss.token }))).toBe('409 in_use');
    expect(outcome(await h.api('DELETE', `/v1/iam/roles/${name}?force=true`, { as: boss.token }))).toBe('204');
    expect((await shown(ada))['issuer_roles']).toEqual([]);
  });

  test('who-can lists the user', async () => {
    await linked(ada, staff, 'auditor');
    const body = { permission: 'audit:read' };
    const found = await h.api('POST', '/v1/iam/explain/who-can?limit=200', { as: boss.token, body });
    expect(JSON.stringify(found.json)).toContain(ada.id);
  });
});

describe('a user that a token of an issuer created', () => {
  test('has no password: no reset gives it one, and it cannot log in with one', async () => {
    await h.db.knex('users').where({ id: ada.id }).update({ source: 'issuer:staff', password_hash: 'unused' });
    expect(await shown(ada)).toMatchObject({ source: 'issuer:staff' });
    const reset = await h.api('POST', `${USERS}/${ada.id}/password-reset`, { as: boss.token, body: {} });
    expect([outcome(reset), reset.json['detail']]).toEqual([
      '422 invalid_field',
      expect.stringContaining('A token of an issuer created this user, which has no password.'),
    ]);
    const login = { email: `${ada.id}@example.test`, password: PASSWORD };
    expect(outcome(await h.api('POST', '/v1/auth/login', { body: login }))).toBe('401 invalid_credential');
    expect((await h.api('GET', '/v1/auth/me', { as: ada.token })).json['source']).toBe('issuer:staff');
  });

  test('may get another name and email address from an administrator', async () => {
    await h.db.knex('users').where({ id: ada.id }).update({ source: 'issuer:staff' });
    const email = `${subject}@acme.test`;
    expect((await put(ada, { name: 'Ada', email })).json).toMatchObject({ name: 'Ada', email });
  });
});
