/** A user of a directory proves itself again with its password of the directory: a real slapd, a real database. */

import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { storeIssuer } from '../http/stored-issuers.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import {
  type DirectoryWorld,
  describeWithSlapd,
  LDAP_PASSWORD,
  startDirectoryWorld,
  WRONG,
} from './directory-world.ts';
import { addPerson, auditOf, clear, everythingStored } from './people.ts';
import { bearer, type Reply, type Stand, startStand } from './stand.ts';

await describeWithSlapd('a user of a directory that links an identity to itself', () => {
  let world: DirectoryWorld;
  let database: FreshDatabase;
  let stand: Stand;
  let n = 0;
  let name: string;
  let session: Reply;
  let path: string;

  beforeAll(async () => {
    world = await startDirectoryWorld();
    database = await freshDatabase();
    stand = await startStand(database.url, { directory: world.service(), login: { failuresPerAccount: 3 } });
  });
  beforeEach(async () => {
    await database.db.knex('tenants').insert({ id: 'default', name: 'default' }).onConflict('id').ignore();
    await storeIssuer(database.db, 'default', 'staff', {});
    name = `admin${++n}`;
    await world.add(name);
    await world.join('operators', name);
    session = await login();
    const me = await stand.get('/v1/auth/me', bearer(session));
    path = `/v1/iam/users/${String(me.json['id'])}`;
  });
  afterEach(async () => {
    world.setWire('open');
    await database.db.knex('user_identities').delete();
    await database.db.knex('users').delete();
    await database.db.knex('issuers').delete();
    await clear(database.db);
    await stand.parts.feed.catchUp();
  });
  afterAll(async () => {
    await stand.close();
    await database.close();
    await world.stop();
  });

  const login = (password = LDAP_PASSWORD): Promise<Reply> =>
    stand.post('/v1/auth/login', { auth_type: 'ldap', username: name, password });
  const link = async (password?: string, subject = 'its-subject'): Promise<string> => {
    const body = { identities: [{ issuer: 'staff', subject }], ...(password && { current_password: password }) };
    const { status, json } = await stand.put(path, body, bearer(session));
    return status < 300 ? String(status) : `${status} ${String(json['code'])}`;
  };
  const REFUSED = '403 reauthentication_required';

  test('needs the password of the directory, which is kept nowhere', async () => {
    expect([await link(), await link(WRONG)]).toEqual([REFUSED, REFUSED]);
    expect(await link(LDAP_PASSWORD)).toBe('200');
    expect((await auditOf(stand.db)).map(({ action, result }) => `${action} ${result}`)).toEqual(
      expect.arrayContaining(['auth.reauthenticate failure', 'user.update success']),
    );
    expect(await everythingStored(stand.db)).not.toContain(LDAP_PASSWORD);
  });

  test('is limited like failed logins, and a right password clears no earlier failure', async () => {
    expect([await link(WRONG), await link(WRONG), await link(LDAP_PASSWORD)]).toEqual([REFUSED, REFUSED, '200']);
    expect([await link(WRONG, 'other'), await link(LDAP_PASSWORD, 'other')]).toEqual([
      REFUSED,
      '429 too_many_attempts',
    ]);
    expect((await login()).status).toBe(429);
  });

  test('is refused if another person has the name now, though the password is right', async () => {
    const former = name;
    await world.rename(former, `${former}-renamed`);
    await world.add(former, { userPassword: 'Another-Pass1' });
    expect(await link('Another-Pass1')).toBe(REFUSED);
    expect(await link(LDAP_PASSWORD)).toBe('200');
  });

  test('is refused once the directory shows the account no longer, and is 503 while it does not answer', async () => {
    world.setWire('gone');
    expect(await link(LDAP_PASSWORD)).toBe('503 unavailable');
    world.setWire('open');
    await world.remove(name);
    expect(await link(LDAP_PASSWORD)).toBe(REFUSED);
  });

  test('is refused to another user with that password', async () => {
    await addPerson(stand.db, { email: 'ada@example.com', roles: ['admin'] });
    session = await stand.post('/v1/auth/login', {
      email: 'ada@example.com',
      password: 'correct horse battery staple',
    });
    const own = await stand.get('/v1/auth/me', bearer(session));
    path = `/v1/iam/users/${String(own.json['id'])}`;
    expect(await link(LDAP_PASSWORD)).toBe(REFUSED);
  });
});
