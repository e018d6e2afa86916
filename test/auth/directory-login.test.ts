/** Logging in by a corporate directory: a real slapd, a real database, a real socket. */

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Fault } from '../../src/domain/errors.ts';
import type { UserId } from '../../src/domain/ids.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import {
  DIRECTORY,
  type DirectoryWorld,
  describeWithSlapd,
  LDAP_PASSWORD,
  LOCKED,
  startDirectoryWorld,
  WRONG,
} from './directory-world.ts';
import { addPerson, auditOf, clear, everythingStored, PASSWORD } from './people.ts';
import { bearer, fromAddress, makePasswords, type Reply, refreshTokenOf, type Stand, startStand } from './stand.ts';

await describeWithSlapd('logging in by a directory', () => {
  let world: DirectoryWorld;
  let database: FreshDatabase;
  let stand: Stand;
  /** How often a local password, or the stand-in for one, was looked at. */
  let checks = 0;
  let n = 0;
  /** A new person of the directory, a developer. */
  let name: string;

  beforeAll(async () => {
    world = await startDirectoryWorld();
    database = await freshDatabase();
    stand = await startStand(database.url, {
      directory: world.service(),
      passwords: (real) => ({
        hash: (password) => real.hash(password),
        needsRehash: (stored) => real.needsRehash(stored),
        verify: (stored, password) => {
          checks++;
          return real.verify(stored, password);
        },
      }),
    });
    await makePasswords();
  });
  beforeEach(async () => {
    for (const id of ['default', 'acme', 'globex'])
      await database.db.knex('tenants').insert({ id, name: id }).onConflict('id').ignore();
    await database.db.knex.raw(
      `insert into roles (tenant_id, name, permissions) values ('acme', 'tester', '{chat:read}') on conflict do nothing`,
    );
    name = `person${++n}`;
    await world.add(name, { mail: `${name}@corp.example` });
    await world.join('developers', name);
    world.reports.length = 0;
  });
  afterEach(async () => {
    world.setWire('open');
    await database.db.knex('roles').delete();
    await clear(database.db);
    await stand.parts.feed.catchUp();
  });
  afterAll(async () => {
    await stand.close();
    await database.close();
    await world.stop();
  });

  const LOGIN = '/v1/auth/login';
  const login = (username: string, password = LDAP_PASSWORD, at: Stand = stand): Promise<Reply> =>
    at.post(LOGIN, { auth_type: 'ldap', username, password });
  const code = (reply: Reply): string => `${reply.status} ${String(reply.json['code'] ?? '')}`.trim();
  const me = async (reply: Reply) => (await stand.get('/v1/auth/me', bearer(reply))).json;

  interface UserRow {
    readonly id: UserId;
    readonly name: string;
    readonly email: string | null;
    readonly tenant_id: string;
    readonly source: string;
    readonly directory_id: string | null;
  }

  async function usersOfDirectory(): Promise<readonly UserRow[]> {
    return await database.db.knex<UserRow>('users').where({ source: 'ldap' }).orderBy('id');
  }

  async function theUser(): Promise<UserRow> {
    const [user, ...others] = await usersOfDirectory();
    if (user === undefined || others.length > 0) throw new Error('not exactly one user of the directory');
    return user;
  }

  /** Returns the number of statements that wait for a locked row. */
  async function waitingForRows(): Promise<number> {
    const { rows } = await database.db.knex.raw<{ rows: { count: number }[] }>(
      `select count(*)::int as count from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    );
    return rows[0]?.count ?? 0;
  }

  /** `after` of the newest audit row of an action. */
  async function told(action: string): Promise<Readonly<Record<string, unknown>>> {
    const row: unknown = await database.db.knex('audit_log').where({ action }).orderBy('id', 'desc').first('after');
    return Object(Object(row).after);
  }

  describe('a first login', () => {
    test('creates the user with the tenant, the roles, the email address and the name from the directory', async () => {
      await world.join('acme', name);
      await world.join('testers', name);
      const reply = await login(name);
      expect([reply.status, reply.json]).toEqual([
        200,
        {
          access_token: expect.any(String),
          token_type: 'Bearer',
          expires_in: 3600,
          refresh_token: expect.stringMatching(/^prt_/),
        },
      ]);
      expect(await me(reply)).toMatchObject({
        email: `${name}@corp.example`,
        name: `Name of ${name}`,
        tenant_id: 'acme',
        roles: ['developer', 'tester'],
        platform_admin: false,
      });
      expect(await theUser()).toMatchObject({
        tenant_id: 'acme',
        source: 'ldap',
        directory_id: expect.stringMatching(/^entryuuid:/),
      });
    });

    test('leaves an audit row of the system for the user, one of the user for the session, and no password', async () => {
      await login(name);
      const { id } = await theUser();
      expect(
        (await auditOf(database.db)).map(({ actor, action, target, result }) => [actor, action, target, result]),
      ).toEqual([
        ['system', 'user.create', id, 'success'],
        [id, 'auth.login', id, 'success'],
      ]);
      expect(await told('user.create')).toMatchObject({
        directory: DIRECTORY,
        directory_roles: ['developer'],
        source: 'ldap',
      });
      expect(await told('auth.login')).toMatchObject({ directory: DIRECTORY });
      expect(await everythingStored(database.db)).not.toContain(LDAP_PASSWORD);
      expect(world.reports).toEqual([{ operation: 'login', directory: DIRECTORY, outcome: 'success' }]);
    });

    test('twenty times at once, at two servers, makes one user', async () => {
      const other = await startStand(database.url, { directory: world.service() });
      const replies = await Promise.all(
        Array.from({ length: 20 }, (_, i) => login(name, LDAP_PASSWORD, i % 2 === 0 ? stand : other)),
      );
      await other.close();
      expect(new Set(replies.map(code))).toEqual(new Set(['200']));
      await theUser();
      expect(await database.db.knex('sessions').count('* as n')).toEqual([{ n: 20 }]);
      expect((await auditOf(database.db)).filter(({ action }) => action === 'user.create')).toHaveLength(1);
    });

    test('of a person without a valid email address creates a user without one', async () => {
      await world.set(name, 'mail', undefined);
      expect(await me(await login(name))).toMatchObject({ email: null });
      await world.set(name, 'mail', 'ada at corp');
      expect(await me(await login(name))).toMatchObject({ email: null });
    });

    test('gives no role that the tenant does not have, and the audit row names it', async () => {
      await world.join('testers', name);
      expect(await me(await login(name))).toMatchObject({ tenant_id: 'default', roles: ['developer'] });
      expect(await told('user.create')).toMatchObject({ unknown_roles: 'tester' });
    });

    test('with the session in a cookie is like any other', async () => {
      const body = { auth_type: 'ldap', username: name, password: LDAP_PASSWORD, session: 'cookie' };
      const reply = await stand.post(LOGIN, body);
      expect([reply.status, reply.json['refresh_token']]).toEqual([200, undefined]);
      expect(String(reply.headers['set-cookie'])).toMatch(/^(?:__Secure-)?postern_refresh=prt_/);
    });
  });

  describe('a later login', () => {
    test('of a renamed person is the same user, with the current name and email address', async () => {
      await login(name);
      const { id } = await theUser();
      await world.rename(name, `${name}-new`);
      await world.set(`${name}-new`, 'mail', 'New@Corp.Example');
      await world.set(`${name}-new`, 'displayName', 'New Name');
      expect(code(await login(name))).toBe('401 invalid_credential');
      expect(await me(await login(`${name}-new`))).toMatchObject({ id, email: 'new@corp.example', name: 'New Name' });
      expect(await told('user.update')).toMatchObject({ email: 'new@corp.example', name: 'New Name' });
    });

    test('takes the name from the directory without characters that cannot be seen or that change the direction of text', async () => {
      await world.set(name, 'displayName', 'Ada\u202e Love\u200blace');
      expect(await me(await login(name))).toMatchObject({ name: 'Ada Lovelace' });
    });

    test('takes the roles that the directory gives now, and those given by hand stay', async () => {
      const first = await login(name);
      const { id } = await theUser();
      await database.db.knex('user_roles').insert({ user_id: id, role_name: 'auditor' });
      await world.leave('developers', name);
      await world.join('analysts', name);
      expect(await me(await login(name))).toMatchObject({ roles: ['analyst', 'auditor'] });
      // The older session has the new roles at once.
      expect(await me(first)).toMatchObject({ roles: ['analyst', 'auditor'] });
      const root = await login(await anAdministrator());
      const shown = await stand.get(`/v1/iam/users/${id}`, bearer(root));
      expect(shown.json).toMatchObject({ roles: ['auditor'], directory_roles: ['analyst'], source: 'ldap' });
    });

    test('of an unchanged person leaves the user unchanged', async () => {
      await login(name);
      const before = await theUser();
      await login(name);
      expect(await theUser()).toEqual(before);
      expect((await auditOf(database.db)).map(({ action }) => action)).toEqual([
        'user.create',
        'auth.login',
        'auth.login',
      ]);
    });
  });

  /** Adds a person to the directory's group that gives `admin`. */
  async function anAdministrator(): Promise<string> {
    const admin = `admin${++n}`;
    await world.add(admin);
    await world.join('operators', admin);
    return admin;
  }

  /** Returns the visible parts of an answer, except those that differ between any two requests. */
  function visible({ status, headers, json }: Reply): unknown {
    const { date: _date, 'x-request-id': _id, ...rest } = headers;
    const { request_id: _request, ...body } = json;
    return { status, headers: rest, json: body };
  }

  describe('a rejected login', () => {
    test('answers like a wrong local password, after the same work, for every reason; the audit log and the metrics have the reason', async () => {
      await addPerson(database.db, { email: 'ada@example.com' });
      const wrongLocally = visible(await stand.post(LOGIN, { email: 'ada@example.com', password: WRONG }));
      const person = async (): Promise<string> => {
        const one = `person${++n}`;
        await world.add(one);
        return one;
      };
      const locked = await person();
      await world.set(locked, ...LOCKED);
      const deactivated = await person();
      await login(deactivated);
      await database.db
        .knex('users')
        .where({ name: `Name of ${deactivated}` })
        .update({ status: 'deactivated' });
      const elsewhere = await person();
      await login(elsewhere);
      await world.join('globex', elsewhere);
      const nowhere = await person();
      await world.join('nowhere', nowhere);
      const tooMany = await person();
      await world.join('acme', tooMany);
      await database.db
        .knex('tenants')
        .where({ id: 'acme' })
        .update({ quotas: { max_users: 0 } });
      const usersBefore = await database.db.knex('users').orderBy('id');
      const cases: readonly (readonly [string, string, Readonly<Record<string, string>>])[] = [
        [name, WRONG, { reason: 'wrong_password' }],
        [name, '', { reason: 'empty_password' }],
        ['', LDAP_PASSWORD, { reason: 'invalid_username' }],
        ['x'.repeat(400), LDAP_PASSWORD, { reason: 'invalid_username' }],
        ['nobody', LDAP_PASSWORD, { reason: 'unknown_user' }],
        ['*', LDAP_PASSWORD, { reason: 'unknown_user' }],
        [`${name}\0`, LDAP_PASSWORD, { reason: 'unknown_user' }],
        [`${name}\ud800`, LDAP_PASSWORD, { reason: 'invalid_username' }],
        [name, `${LDAP_PASSWORD}\0`, { reason: 'wrong_password' }],
        ['*)(uid=admin', LDAP_PASSWORD, { reason: 'unknown_user' }],
        [deactivated, LDAP_PASSWORD, { code: 'deactivated' }],
        [elsewhere, LDAP_PASSWORD, { code: 'tenant_changed' }],
        [nowhere, LDAP_PASSWORD, { code: 'unknown_tenant' }],
        [tooMany, LDAP_PASSWORD, { code: 'quota_exceeded' }],
      ];
      for (const [username, password, reason] of cases) {
        checks = 0;
        world.reports.length = 0;
        expect([username, visible(await login(username, password))]).toEqual([username, wrongLocally]);
        expect([username, checks]).toEqual([username, 1]);
        expect(await told('auth.login')).toMatchObject(reason);
        expect(world.reports).toMatchObject([{ operation: 'login', outcome: reason['reason'] ?? reason['code'] }]);
      }
      expect(visible(await login(locked))).toEqual(wrongLocally);
      expect(['disabled', 'locked']).toContain((await told('auth.login'))['reason']);
      expect(await database.db.knex('users').orderBy('id')).toEqual(usersBefore);
    });

    test('takes as long for an unknown name as for a wrong password', async () => {
      const service = world.service();
      for (let i = 0; i < 3; i++) service.responseTimer.record(400);
      const slow = await startStand(database.url, { directory: service });
      const timed = async (username: string, password: string): Promise<readonly [string, boolean]> => {
        const from = performance.now();
        const reply = await login(username, password, slow);
        return [code(reply), performance.now() - from >= 400];
      };
      const failures = await Promise.all([
        timed('nobody', WRONG),
        timed(name, ''),
        timed('', WRONG),
        timed(name, WRONG),
      ]);
      await slow.close();
      expect(failures).toEqual(Array.from({ length: 4 }, () => ['401 invalid_credential', true]));
    });

    test('because of max_users succeeds after the limit allows another user', async () => {
      await world.join('acme', name);
      await database.db
        .knex('tenants')
        .where({ id: 'acme' })
        .update({ quotas: { max_users: 1 } });
      const first = await addPerson(database.db, { email: 'first@example.com', tenant: 'acme' });
      expect(code(await login(name))).toBe('401 invalid_credential');
      await database.db.knex('users').where({ id: first }).update({ status: 'deactivated' });
      expect(code(await login(name))).toBe('200');
      // An existing user needs no seat.
      await database.db.knex('users').where({ id: first }).update({ status: 'active' });
      expect(code(await login(name))).toBe('200');
    });
  });

  describe('a login with the right password', () => {
    test('in a suspended tenant is rejected with tenant_suspended, and creates no user', async () => {
      await world.join('acme', name);
      await database.db.knex('tenants').where({ id: 'acme' }).update({ status: 'suspended' });
      expect(code(await login(name))).toBe('403 tenant_suspended');
      expect(await usersOfDirectory()).toEqual([]);
      expect(await told('auth.login')).toMatchObject({ code: 'tenant_suspended', directory: DIRECTORY });
      expect(await failuresOf()).toBe(0);
    });

    test('that must be changed first is rejected with password_expired, and counts as no failure', async () => {
      await world.set(name, 'pwdReset', 'TRUE');
      expect(code(await login(name))).toBe('403 password_expired');
      expect(await told('auth.login')).toMatchObject({
        code: 'password_expired',
        reason: 'must_change',
        directory: DIRECTORY,
      });
      expect(await failuresOf()).toBe(0);
      expect(code(await login(name, WRONG))).toBe('401 invalid_credential');
    });
  });

  /** Attempts that count as failures now, of accounts. */
  test('an account expires by the clock of the server, which may differ from that of the machine', async () => {
    await world.set(name, 'pwdEndTime', '20990101000000Z');
    const at = (year: number) => world.service({}, { now: () => Date.UTC(year) }).directories;
    const found = await at(2098).authenticate(name, LDAP_PASSWORD);
    if (found.kind !== 'proved') throw new Error(found.kind);
    const { stableId } = found.person;
    expect(await at(2098).lookup(DIRECTORY, stableId)).toMatchObject({ kind: 'found' });
    expect(await at(2100).lookup(DIRECTORY, stableId)).toEqual({ kind: 'gone', reason: 'expired' });
  });

  async function failuresOf(): Promise<number> {
    const { rows } = await database.db.knex.raw<{ rows: { n: number }[] }>(
      `select coalesce(sum(failures), 0)::int as n from login_failures where scope = 'account'`,
    );
    return rows[0]?.n ?? 0;
  }

  describe('guessing', () => {
    test('locks the user of the directory, for every spelling, until an administrator unlocks it', async () => {
      const slowed = await startStand(database.url, { directory: world.service(), login: { failuresPerAccount: 3 } });
      await addPerson(database.db, { email: 'root@example.com', roles: ['admin'] });
      const root = bearer(await slowed.post('/v1/auth/login', { email: 'root@example.com', password: PASSWORD }));
      const me = await slowed.get('/v1/auth/me', bearer(await login(name, LDAP_PASSWORD, slowed)));
      expect(me.json).toMatchObject({ source: 'ldap' });
      const path = `/v1/iam/users/${String(me.json['id'])}`;
      expect((await slowed.get(path, root)).json).toMatchObject({
        locked_until: null,
        last_login_at: expect.any(String),
      });
      for (const one of [name, `CORP\\${name}`, `${name}@corp.example`]) await login(one, WRONG, slowed);
      expect((await slowed.get(path, root)).json).toMatchObject({ locked_until: expect.any(String) });
      const { data } = (await slowed.get('/v1/iam/users?locked=true', root)).json;
      expect(data).toEqual([expect.objectContaining({ id: me.json['id'] })]);
      expect(code(await login(name, LDAP_PASSWORD, slowed))).toBe('429 too_many_attempts');
      const unlocked = await slowed.post(`${path}/unlock`, {}, root);
      expect([unlocked.status, unlocked.json['locked_until']]).toEqual([200, null]);
      expect(code(await login(name, LDAP_PASSWORD, slowed))).toBe('200');
      await slowed.close();
    });

    test('is limited for all spellings of a name together, before a request to the directory', async () => {
      const slowed = await startStand(database.url, { directory: world.service(), login: { failuresPerAccount: 3 } });
      const spelt = [name, name.toUpperCase(), `CORP\\${name}`, `${name}@corp.example`, ` ${name}`];
      const replies: string[] = [];
      for (const one of spelt) replies.push(code(await login(one, WRONG, slowed)));
      expect(replies).toEqual([
        ...Array.from({ length: 3 }, () => '401 invalid_credential'),
        ...Array.from({ length: 2 }, () => '429 too_many_attempts'),
      ]);
      world.reports.length = 0;
      expect(code(await login(name, LDAP_PASSWORD, slowed))).toBe('429 too_many_attempts');
      expect(world.reports).toEqual([]);
      await slowed.close();
    });

    test('is limited also for spellings that a directory treats as equal: text after a NUL, invisible characters', async () => {
      const slowed = await startStand(database.url, { directory: world.service(), login: { failuresPerAccount: 3 } });
      const hidden = (mark: string): string => `${name.slice(0, 1)}${mark}${name.slice(1)}`;
      const spelt = [`${name}\0x`, hidden('\u00ad'), hidden('\u200d'), hidden('\ufeff'), `${name}\0y`, `\u0001${name}`];
      const replies: string[] = [];
      for (const one of spelt) replies.push(code(await login(one, WRONG, slowed)));
      expect(replies).toEqual([
        ...Array.from({ length: 3 }, () => '401 invalid_credential'),
        ...Array.from({ length: 3 }, () => '429 too_many_attempts'),
      ]);
      await slowed.close();
    });

    test('is not forgiven by a login of another user with a similar name', async () => {
      const alike = `${name.slice(0, 1)}\u0301${name.slice(1)}`;
      await world.add(alike);
      await login(name, WRONG);
      await login(name, WRONG);
      expect(code(await login(alike))).toBe('200');
      expect(await failuresOf()).toBe(2);
    });
  });

  describe('an unreachable directory', () => {
    test.each(['gone', 'hanging'] as const)(
      '(%s) is 503, counts no failure, and local logins work on',
      async (state) => {
        await addPerson(database.db, { email: 'ada@example.com' });
        const impatient = await startStand(database.url, { directory: world.service({ timeoutMs: 500 }) });
        world.setWire(state);
        expect(code(await login(name, LDAP_PASSWORD, impatient))).toBe('503 unavailable');
        await expect.poll(failuresOf).toBe(0);
        await impatient.close();
        expect(world.reports).toMatchObject([{ operation: 'login', outcome: 'unavailable' }]);
        expect((await stand.post(LOGIN, { email: 'ada@example.com', password: PASSWORD })).status).toBe(200);
        world.setWire('open');
        expect(code(await login(name))).toBe('200');
      },
    );

    test('is answered with 503 before the attempt is returned: the answer does not wait for that statement', async () => {
      world.setWire('hanging');
      const waiting = login(name);
      await expect.poll(() => world.connections()).toBe(1);
      const trx = await database.db.knex.transaction();
      try {
        await trx('login_failures').forUpdate();
        world.dropAll();
        expect(code(await waiting)).toBe('503 unavailable');
        expect(await failuresOf()).toBe(1);
      } finally {
        await trx.commit();
      }
      await expect.poll(failuresOf).toBe(0);
    });

    test('gets a shorter timeout by the time that the login already waited', async () => {
      const elapsed: number[] = [];
      const service = world.service();
      const directories: typeof service.directories = {
        ...service.directories,
        authenticate: async (_username, _password, elapsedMs = 0) => {
          elapsed.push(elapsedMs);
          throw new Fault('asked, and that is enough');
        },
      };
      const counting = await startStand(database.url, { directory: { ...service, directories } });
      expect(code(await login(name, LDAP_PASSWORD, counting))).toBe('503 unavailable');
      await expect.poll(failuresOf).toBe(0);
      const trx = await database.db.knex.transaction();
      await trx('login_failures').forUpdate();
      const waiting = login(name, LDAP_PASSWORD, counting);
      await expect.poll(waitingForRows).toBeGreaterThan(0);
      const fromMs = performance.now();
      await trx.raw('SELECT pg_sleep(0.05)');
      const heldMs = performance.now() - fromMs;
      await trx.commit();
      expect(code(await waiting)).toBe('503 unavailable');
      expect(elapsed).toHaveLength(2);
      expect(elapsed[1]).toBeGreaterThan(heldMs);
      await expect.poll(failuresOf).toBe(0);
      await counting.close();
    });

    test('gets no request after another directory checked the password, and the attempt stays counted', async () => {
      const urls = [{ text: 'ldap://127.0.0.1:1', secure: false, host: '127.0.0.1', port: 1 }];
      const open = { namesWithoutDomain: true };
      const service = world.service(
        { ...open, userDnPattern: `uid={0},${world.server.people}` },
        { beside: { ...open, name: 'other', urls } },
      );
      const two = await startStand(database.url, { directory: service });
      expect(code(await login(name, WRONG, two))).toBe('401 invalid_credential');
      expect(await failuresOf()).toBe(1);
      expect(code(await login(name, LDAP_PASSWORD, two))).toBe('200');
      expect(await failuresOf()).toBe(1);
      await two.close();
    });

    test('that hangs holds a bounded number of logins; the next one gets 503 at once', async () => {
      await addPerson(database.db, { email: 'ada@example.com' });
      const few = await startStand(database.url, { directory: world.service({ timeoutMs: 60_000 }, { maxAtOnce: 2 }) });
      world.setWire('hanging');
      const held = [login(name, LDAP_PASSWORD, few), login('other', LDAP_PASSWORD, few)];
      await expect.poll(() => world.connections()).toBe(2);
      const refused = await login('third', LDAP_PASSWORD, few);
      expect([code(refused), refused.headers['retry-after'], world.connections()]).toEqual(['503 unavailable', '1', 2]);
      expect((await few.post(LOGIN, { email: 'ada@example.com', password: PASSWORD })).status).toBe(200);
      world.dropAll();
      expect((await Promise.all(held)).map(code)).toEqual(['503 unavailable', '503 unavailable']);
      await expect.poll(() => world.connections()).toBe(0);
      await few.close();
    });

    test('that hangs and holds all its logins does not delay local logins from the same address', async () => {
      await addPerson(database.db, { email: 'ada@example.com' });
      const many = await startStand(database.url, { directory: world.service({ timeoutMs: 60_000 }) });
      world.setWire('hanging');
      const held = Array.from({ length: 90 }, (_, i) => login(`somebody${i}`, LDAP_PASSWORD, many));
      await expect.poll(() => world.connections()).toBe(64);
      const local = { email: 'ada@example.com', password: PASSWORD };
      const replies = await Promise.all(Array.from({ length: 5 }, () => many.post(LOGIN, local)));
      expect([replies.map((reply) => reply.status), world.connections()]).toEqual([[200, 200, 200, 200, 200], 64]);
      world.dropAll();
      expect(new Set((await Promise.all(held)).map(code))).toEqual(new Set(['503 unavailable']));
      await many.close();
    });
  });

  describe('a user of the directory', () => {
    test('has no local password: a login by email address is rejected, and so is a change of the password', async () => {
      const reply = await login(name);
      const local = await stand.post(LOGIN, { email: `${name}@corp.example`, password: LDAP_PASSWORD });
      expect(code(local)).toBe('401 invalid_credential');
      expect(await told('auth.login')).toMatchObject({ reason: 'directory_user' });
      const body = { old_password: LDAP_PASSWORD, new_password: 'a lake of tin whistles' };
      const changed = await stand.post('/v1/auth/password', body, bearer(reply));
      expect([code(changed), changed.json['detail']]).toEqual([
        '422 invalid_field',
        expect.stringMatching(/directory/),
      ]);
    });

    test('that is an administrator by the directory does not count as a local one: the last local one stays', async () => {
      const root = await addPerson(database.db, { email: 'root@example.com', roles: ['admin'] });
      const admin = bearer(await login(await anAdministrator()));
      expect((await stand.get('/v1/auth/me', admin)).json).toMatchObject({ roles: ['admin'], platform_admin: true });
      for (const path of ['', '/deactivate']) {
        const reply =
          path === ''
            ? stand.delete(`/v1/iam/users/${root}`, admin)
            : stand.post(`/v1/iam/users/${root}${path}`, undefined, admin);
        expect(code(await reply)).toBe('409 last_admin');
      }
    });

    test('with more permissions by the directory cannot be deactivated by a caller with fewer', async () => {
      const admin = await anAdministrator();
      await login(admin);
      const { id } = await theUser();
      await addPerson(database.db, { email: 'boss@example.com', tenant: 'default', roles: ['tenant-admin'] });
      const boss = bearer(await stand.post(LOGIN, { email: 'boss@example.com', password: PASSWORD }));
      expect(code(await stand.post(`/v1/iam/users/${id}/deactivate`, undefined, boss))).toBe('403 escalation');
    });

    test('may be deleted, and its next login creates another user', async () => {
      await login(name);
      const { id } = await theUser();
      const admin = bearer(await login(await anAdministrator()));
      expect((await stand.delete(`/v1/iam/users/${id}`, admin)).status).toBe(204);
      expect((await me(await login(name)))['id']).not.toBe(id);
    });
  });

  test('without a directory a directory login is 401, and a refresh of its session is 503', async () => {
    const bare = await startStand(database.url);
    const refreshed = refreshTokenOf(await login(name));
    expect(code(await login(name, LDAP_PASSWORD, bare))).toBe('401 invalid_credential');
    expect(code(await bare.post('/v1/auth/refresh', { refresh_token: refreshed }, fromAddress('192.0.2.1')))).toBe(
      '503 unavailable',
    );
    await bare.close();
  });
});
