/**
 * Email addresses of directory users that another user has: every person still logs in, and each address stays with its
 * user.
 */

import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import type { UserId } from '../../src/domain/ids.ts';
import { DirectoryLookups } from '../../src/iam/directory/lookups.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { type DirectoryWorld, describeWithSlapd, LDAP_PASSWORD, startDirectoryWorld } from './directory-world.ts';
import { addKey, addPerson, clear, PASSWORD } from './people.ts';
import { bearer, type Reply, refreshTokenOf, type Stand, startStand } from './stand.ts';

await describeWithSlapd('the email address of a user of a directory', () => {
  let world: DirectoryWorld;
  let database: FreshDatabase;
  let stand: Stand;
  let n = 0;
  let name: string;
  let mail: string;

  beforeAll(async () => {
    world = await startDirectoryWorld();
    database = await freshDatabase();
    stand = await startStand(database.url, { directory: world.service() });
  });
  beforeEach(async () => {
    await database.db.knex('tenants').insert({ id: 'default', name: 'default' }).onConflict('id').ignore();
    name = `bob${++n}`;
    mail = `${name}@corp.example`;
    await world.add(name, { mail });
    await world.join('developers', name);
  });
  afterEach(async () => {
    await clear(database.db);
    await stand.parts.feed.catchUp();
  });
  afterAll(async () => {
    await stand.close();
    await database.close();
    await world.stop();
  });

  const login = async (username: string, at: Stand = stand): Promise<Reply> => {
    const reply = await at.post('/v1/auth/login', { auth_type: 'ldap', username, password: LDAP_PASSWORD });
    expect([username, reply.status]).toEqual([username, 200]);
    return reply;
  };
  const me = async (reply: Reply) => (await stand.get('/v1/auth/me', bearer(reply))).json;
  const administrator = async (): Promise<Readonly<Record<string, string>>> => {
    const admin = `admin${++n}`;
    await world.add(admin);
    await world.join('operators', admin);
    return bearer(await login(admin));
  };
  const shown = async (reply: Reply) => {
    const { id } = await me(reply);
    return (await stand.get(`/v1/iam/users/${String(id)}`, await administrator())).json;
  };
  const conflicts = async (): Promise<readonly unknown[]> =>
    await database.db.knex('audit_log').where({ action: 'user.email_conflict' }).orderBy('id');

  test('that a local user has is left to that user, and the person logs in without one; administrators see the conflict', async () => {
    const ada = await addPerson(database.db, { email: mail });
    const reply = await login(name);
    expect(await me(reply)).toMatchObject({ email: null, roles: ['developer'] });
    expect(await me(reply)).not.toHaveProperty('email_conflict');
    expect(await shown(reply)).toMatchObject({ email: null, email_conflict: mail });
    const local = await stand.post('/v1/auth/login', { email: mail, password: PASSWORD });
    expect(await me(local)).toMatchObject({ id: ada, email: mail });
  });

  test('with a conflict is audited once, and the audit row does not name the other user', async () => {
    const ada = await addPerson(database.db, { email: mail });
    const { id } = await me(await login(name));
    const before = await database.db.knex('users').orderBy('id');
    await login(name);
    const again = await login(name);
    await stand.post('/v1/auth/refresh', { refresh_token: refreshTokenOf(again) });
    expect(await conflicts()).toMatchObject([
      { actor_type: 'system', target_id: id, tenant_id: 'default', result: 'refused', after: { email: mail } },
    ]);
    expect(JSON.stringify(await conflicts())).not.toContain(ada);
    expect(await database.db.knex('audit_log').where({ action: 'user.update' })).toEqual([]);
    expect(await database.db.knex('users').orderBy('id').select('id', 'email', 'email_conflict', 'updated_at')).toEqual(
      before.map(({ id: user, email, email_conflict, updated_at }) => ({
        id: user,
        email,
        email_conflict,
        updated_at,
      })),
    );
  });

  test('that another person of the directory took prevents neither login', async () => {
    const first = await login(name);
    await world.add(`${name}x`, { mail: mail.toUpperCase() });
    const second = await login(`${name}x`);
    expect([(await me(first))['email'], (await me(second))['email']]).toEqual([mail, null]);
    expect((await me(await login(name)))['email']).toBe(mail);
  });

  test('that later becomes one of another user leaves the user without, and the old address is free', async () => {
    const taken = `taken${++n}@corp.example`;
    await addPerson(database.db, { email: taken });
    await login(name);
    await world.set(name, 'mail', taken);
    expect(await shown(await login(name))).toMatchObject({ email: null, email_conflict: taken });
    await addPerson(database.db, { email: mail });
  });

  const STORES: Readonly<Record<string, (session: Reply) => Promise<unknown>>> = {
    'the next login': () => login(name),
    'the next refresh': (session) => stand.post('/v1/auth/refresh', { refresh_token: refreshTokenOf(session) }),
    'the next daily lookup': async () => {
      await database.db.knex.raw(`update users set directory_checked_at = clock_timestamp() - interval '2 days'`);
      await new DirectoryLookups(stand.parts, world.service(), () => undefined).run();
    },
  };

  test.each(Object.entries(STORES))('that becomes free is stored by %s', async (_title, store) => {
    const ada = await addPerson(database.db, { email: mail });
    const [session, another] = [await login(name), await login(name)];
    const user = await database.db.knex<{ id: UserId; source: string }>('users').where('source', 'ldap').first('id');
    await addKey(database.db, user?.id ?? ada);
    await store(session);
    expect((await me(session))['email']).toBeNull();
    await database.db.knex('users').where({ id: ada }).delete();
    await database.db.knex('users').update({ directory_claimed_at: null });
    await store(another);
    expect(await shown(session)).toMatchObject({ email: mail, email_conflict: null });
    expect(await conflicts()).toHaveLength(1);
  });

  test('of two persons who log in for the first time at once, at two servers, goes to one, and both log in', async () => {
    const other = await startStand(database.url, { directory: world.service() });
    for (let round = 0; round < 5; round++) {
      const shared = `shared${++n}@corp.example`;
      const names = Array.from({ length: 4 }, (_, i) => `pair${n}-${i}`);
      for (const one of names) await world.add(one, { mail: shared });
      const replies = await Promise.all(names.map((one, i) => login(one, i % 2 === 0 ? stand : other)));
      const emails = await Promise.all(replies.map(async (reply) => (await me(reply))['email']));
      expect(emails.filter((email) => email === shared)).toHaveLength(1);
      expect(emails.filter((email) => email === null)).toHaveLength(3);
    }
    await other.close();
  });

  test('of two persons who exchange addresses and log in at once ends with each having its own', async () => {
    const second = `swap${++n}`;
    await world.add(second, { mail: `${second}@corp.example` });
    await login(name);
    await login(second);
    await world.set(name, 'mail', `${second}@corp.example`);
    await world.set(second, 'mail', mail);
    for (let round = 0; round < 3; round++) await Promise.all([login(name), login(second)]);
    expect((await me(await login(name)))['email']).toBe(`${second}@corp.example`);
    expect((await me(await login(second)))['email']).toBe(mail);
  });

  test('that a person of the directory holds is 409 for a local user created later', async () => {
    await login(name);
    const reply = await stand.post('/v1/iam/users', { email: mail, name: 'Late' }, await administrator());
    expect([reply.status, reply.json['code']]).toEqual([409, 'already_exists']);
  });
});
