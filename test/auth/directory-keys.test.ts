/**
 * Keys of a directory's users: they work as long as the directory shows the owner as active. A real slapd, a real
 * database.
 */

import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { makeId, type UserId } from '../../src/domain/ids.ts';
import type { DirectoryService } from '../../src/iam/auth/directory-service.ts';
import { isBelievable } from '../../src/iam/auth/directory-suspension.ts';
import { DirectoryLookups, type LookupFailure } from '../../src/iam/directory/lookups.ts';
import { BLIND } from '../directory/servers/slapd.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import {
  DIRECTORY,
  type DirectoryWorld,
  describeWithSlapd,
  LDAP_PASSWORD,
  LOCKED,
  startDirectoryWorld,
} from './directory-world.ts';
import { addKey, clear } from './people.ts';
import { bearer, type Reply, refreshTokenOf, type Stand, startStand } from './stand.ts';

test('the guard against mass removal accepts ten removals, or 20 % of the persons checked, and no more', () => {
  fc.assert(
    fc.property(fc.nat(400), fc.nat(100), (checked, removed) => {
      const [after, persons] = [removed + 1, checked + 1];
      expect(isBelievable({ checked, removed })).toBe(!(after > 10 && after * 5 > persons));
    }),
  );
});

await describeWithSlapd('the keys of a user of a directory', () => {
  let world: DirectoryWorld;
  let database: FreshDatabase;
  let stand: Stand;
  let other: Stand;
  let lookups: DirectoryLookups;
  const failures: LookupFailure[] = [];
  let n = 0;
  let name: string;

  beforeAll(async () => {
    world = await startDirectoryWorld();
    database = await freshDatabase();
    stand = await startStand(database.url, { directory: world.service() });
    other = await startStand(database.url);
  });
  beforeEach(async () => {
    for (const id of ['default', 'acme'])
      await database.db.knex('tenants').insert({ id, name: id }).onConflict('id').ignore();
    name = `owner${++n}`;
    await world.add(name);
    await world.join('developers', name);
    failures.length = 0;
    lookups = lookupsAt();
    world.reports.length = 0;
  });
  afterEach(async () => {
    world.setWire('open');
    await clear(database.db);
    for (const each of [stand, other]) await each.parts.feed.catchUp();
  });
  afterAll(async () => {
    await stand.close();
    await other.close();
    await database.close();
    await world.stop();
  });

  const lookupsAt = (service = world.service()): DirectoryLookups =>
    new DirectoryLookups(stand.parts, service, (failure) => failures.push(failure));
  const login = (username: string, password = LDAP_PASSWORD): Promise<Reply> =>
    stand.post('/v1/auth/login', { auth_type: 'ldap', username, password });
  const withKey = (key: string, at: Stand = stand): Promise<Reply> =>
    at.get('/v1/auth/me', { authorization: `Bearer ${key}` });
  const statusOf = async (key: string, at: Stand = stand): Promise<number> => (await withKey(key, at)).status;

  interface Owner {
    readonly id: UserId;
    readonly key: string;
    readonly session: Reply;
  }

  async function owner(username = name): Promise<Owner> {
    const session = await login(username);
    const { id } = await database.db
      .knex<{ id: UserId }>('users')
      .orderBy('created_at', 'desc')
      .first('id')
      .then(required);
    const key = await addKey(database.db, id);
    expect(await statusOf(key)).toBe(200);
    expect(await statusOf(key, other)).toBe(200);
    return { id, key, session };
  }

  function required<T>(value: T | undefined): T {
    if (value === undefined) throw new Error('a test reads what is not there');
    return value;
  }

  /** Dates the last answer of the directory for every user two days back. */
  async function aDayLater(): Promise<void> {
    await database.db.knex('users').update({
      directory_checked_at: database.db.knex.raw(`clock_timestamp() - interval '2 days'`),
      directory_claimed_at: null,
    });
  }

  async function lookUpAll(): Promise<void> {
    await aDayLater();
    while ((await lookups.run()) > 0);
  }

  interface AuditRow {
    readonly action: string;
    readonly actor_type: string;
    readonly target_id: string;
    readonly tenant_id: string;
    readonly before: Readonly<Record<string, unknown>>;
    readonly after: Readonly<Record<string, unknown>>;
  }

  async function audited(...actions: string[]): Promise<readonly AuditRow[]> {
    return await database.db.knex<AuditRow>('audit_log').whereIn('action', actions).orderBy('id');
  }

  async function shown(id: UserId): Promise<Readonly<Record<string, unknown>>> {
    const admin = `admin${++n}`;
    await world.add(admin);
    await world.join('operators', admin);
    return (await stand.get(`/v1/iam/users/${id}`, bearer(await login(admin)))).json;
  }

  const GONE: Readonly<Record<string, readonly [() => Promise<void>, string]>> = {
    removed: [() => world.remove(name), 'removed'],
    'disabled by an administrator': [() => world.set(name, ...LOCKED), 'disabled'],
    expired: [() => world.set(name, 'pwdEndTime', '20200101000000Z'), 'expired'],
    'of another tenant now': [() => world.join('acme', name), 'tenant_changed'],
  };

  describe.each(Object.entries(GONE))('whose person is %s', (_title, [leave, status]) => {
    async function expectSuspended({ id, key }: Owner): Promise<void> {
      expect(await statusOf(key)).toBe(401);
      await other.parts.feed.catchUp();
      expect(await statusOf(key, other)).toBe(401);
      expect(await shown(id)).toMatchObject({ status: 'active', directory_status: status, directory_roles: [] });
      const rows = await audited('user.suspend');
      expect(rows).toMatchObject([
        {
          actor_type: 'system',
          target_id: id,
          tenant_id: 'default',
          before: { directory_status: 'active', directory_roles: ['developer'] },
          after: { directory_status: status, directory_roles: [], directory: DIRECTORY, sessions_ended: 1 },
        },
      ]);
    }

    test('are rejected by every server after a refresh of a session', async () => {
      const one = await owner();
      await leave();
      expect((await stand.post('/v1/auth/refresh', { refresh_token: refreshTokenOf(one.session) })).status).toBe(401);
      await expectSuspended(one);
    });

    test('are rejected by every server after the daily lookup, which leaves one audit row', async () => {
      const one = await owner();
      await leave();
      await lookUpAll();
      await lookUpAll();
      await expectSuspended(one);
      expect(await withKey(one.key)).toMatchObject({ json: { code: 'invalid_credential' } });
      expect((await stand.get('/v1/auth/me', bearer(one.session))).status).toBe(401);
      expect(world.reports.filter(({ operation }) => operation === 'lookup')).toEqual([
        { operation: 'lookup', directory: DIRECTORY, outcome: status },
        { operation: 'lookup', directory: DIRECTORY, outcome: status },
      ]);
      expect(failures).toEqual([]);
    });
  });

  test('work again after a lookup that finds the person active, with the current roles', async () => {
    const { id, key } = await owner();
    await world.set(name, ...LOCKED);
    await lookUpAll();
    expect(await statusOf(key)).toBe(401);
    await world.set(name, LOCKED[0], undefined);
    await world.join('analysts', name);
    await lookUpAll();
    expect(await statusOf(key)).toBe(200);
    await other.parts.feed.catchUp();
    expect(await statusOf(key, other)).toBe(200);
    expect(await shown(id)).toMatchObject({ directory_status: 'active', directory_roles: ['analyst', 'developer'] });
    expect(await audited('user.suspend', 'user.resume')).toMatchObject([
      { action: 'user.suspend' },
      {
        action: 'user.resume',
        actor_type: 'system',
        before: { directory_status: 'disabled' },
        after: { directory_status: 'active' },
      },
    ]);
  });

  test('work again after a login', async () => {
    const { key } = await owner();
    await world.set(name, ...LOCKED);
    await lookUpAll();
    expect(await statusOf(key)).toBe(401);
    await world.set(name, LOCKED[0], undefined);
    expect((await login(name)).status).toBe(200);
    expect(await statusOf(key)).toBe(200);
  });

  test('are rejected after a login that the directory rejects for an expired password', async () => {
    const { id, key } = await owner();
    await world.set(name, 'pwdReset', 'TRUE');
    expect((await login(name)).status).toBe(403);
    expect(await statusOf(key)).toBe(401);
    expect(await shown(id)).toMatchObject({ directory_status: 'expired' });
  });

  describe('after two answers of the directory, of which the older one arrives later,', () => {
    /** A directory whose answers take so long that something happens before they arrive. */
    function late(meanwhile: () => Promise<unknown>): DirectoryService {
      const service = world.service();
      const { directories } = service;
      const held = async <T>(answer: Promise<T>): Promise<T> => {
        const read = await answer;
        await meanwhile();
        return read;
      };
      return {
        ...service,
        directories: {
          ...directories,
          lookup: (...asked) => held(directories.lookup(...asked)),
          authenticate: (...asked) => held(directories.authenticate(...asked)),
        },
      };
    }

    const ASKS: Readonly<Record<string, (at: Stand, session: Reply) => Promise<Reply>>> = {
      'a refresh': (at, session) => at.post('/v1/auth/refresh', { refresh_token: refreshTokenOf(session) }),
      'a login': (at) => at.post('/v1/auth/login', { auth_type: 'ldap', username: name, password: LDAP_PASSWORD }),
    };

    describe.each(Object.entries(ASKS))('that of %s,', (_title, ask) => {
      async function asked(one: Owner, meanwhile: () => Promise<unknown>): Promise<number> {
        const at = await startStand(database.url, { directory: late(meanwhile) });
        const { status } = await ask(at, one.session);
        await at.close();
        await stand.parts.feed.catchUp();
        return status;
      }
      const newer = async (session: Reply): Promise<number> =>
        (await stand.post('/v1/auth/refresh', { refresh_token: refreshTokenOf(session) })).status;

      test('stay rejected if the newer one suspended the user', async () => {
        const one = await owner();
        const session = await login(name);
        const status = await asked(one, async () => {
          await world.set(name, ...LOCKED);
          expect(await newer(session)).toBe(401);
        });
        expect([status, await statusOf(one.key)]).toEqual([401, 401]);
        expect(await shown(one.id)).toMatchObject({ directory_status: 'disabled', directory_roles: [] });
      });

      test('get no role back that the newer one took', async () => {
        const one = await owner();
        const session = await login(name);
        await world.join('analysts', name);
        const status = await asked(one, async () => {
          await world.leave('developers', name);
          expect(await newer(session)).toBe(200);
        });
        expect([status, await statusOf(one.key)]).toEqual([200, 200]);
        expect(await shown(one.id)).toMatchObject({ directory_status: 'active', directory_roles: ['analyst'] });
      });

      test('get roles, and work again, if no other answer arrived in between', async () => {
        const one = await owner();
        await world.join('analysts', name);
        expect(await asked(one, () => Promise.resolve())).toBe(200);
        expect(await shown(one.id)).toMatchObject({ directory_roles: ['analyst', 'developer'] });
      });
    });
  });

  test('stay rejected for a deactivated user, also if the directory reports the person as active', async () => {
    const { id, key } = await owner();
    await world.set(name, ...LOCKED);
    await lookUpAll();
    await database.db.knex('users').where({ id }).update({ status: 'deactivated' });
    await world.set(name, LOCKED[0], undefined);
    await lookUpAll();
    expect(await shown(id)).toMatchObject({ status: 'deactivated', directory_status: 'active' });
    expect(await statusOf(key)).toBe(401);
  });

  test('work on during a temporary lock of the person, which wrong passwords of any client can cause', async () => {
    const { id, key } = await owner();
    await world.set(name, 'pwdAccountLockedTime', '20260101000000Z');
    await lookUpAll();
    expect(await statusOf(key)).toBe(200);
    expect(world.reports.at(-1)).toMatchObject({ operation: 'lookup', outcome: 'locked' });
    await world.set(name, 'pwdAccountLockedTime', undefined);
    expect(await shown(id)).toMatchObject({ directory_status: 'active' });
  });

  test('lose and gain the roles of groups at the daily lookup', async () => {
    const { id } = await owner();
    await world.leave('developers', name);
    await world.join('analysts', name);
    await lookUpAll();
    expect(await shown(id)).toMatchObject({ directory_roles: ['analyst'], directory_status: 'active' });
    expect(await audited('user.update')).toMatchObject([
      { actor_type: 'system', after: { directory_roles: ['analyst'] } },
    ]);
  });

  describe('whose person is not found', () => {
    const FAULTS: Readonly<Record<string, () => Parameters<DirectoryWorld['service']>[0]>> = {
      'because the search base does not exist': () => ({ userSearchBase: `ou=nowhere,${world.server.suffix}` }),
      'because the service account may read no person': () => ({ serviceAccount: BLIND }),
      'because the service account has another password now': () => ({
        serviceAccount: { dn: world.server.service.dn, password: 'changed' },
      }),
      'because the filter finds no person': () => ({
        userSearchFilter: '(&(objectClass=inetOrgPerson)(employeeNumber=1)(uid={0}))',
      }),
      'because the server is gone': () => {
        world.setWire('gone');
        return {};
      },
    };

    test.each(Object.entries(FAULTS))('%s, work on, and a refresh is 503', async (_title, broken) => {
      const { id, key, session } = await owner();
      const service = world.service(broken());
      lookups = lookupsAt(service);
      await lookUpAll();
      expect(await statusOf(key)).toBe(200);
      expect(failures).toMatchObject([{ directory: DIRECTORY, lookups: 1 }]);
      const at = await startStand(database.url, { directory: service });
      const reply = await at.post('/v1/auth/refresh', { refresh_token: refreshTokenOf(session) });
      await at.close();
      expect([reply.status, reply.json['code']]).toEqual([503, 'unavailable']);
      world.setWire('open');
      expect(await shown(id)).toMatchObject({ directory_status: 'active', directory_roles: ['developer'] });
      expect(await audited('user.suspend')).toEqual([]);
    });

    test('in a tree of which a part is on another server, work on', async () => {
      const { key } = await owner();
      await world.refer('elsewhere');
      try {
        await world.remove(name);
        await lookUpAll();
        expect(await statusOf(key)).toBe(200);
        expect(String(failures[0]?.error)).toContain('referrals are not followed');
      } finally {
        await world.unrefer('elsewhere');
      }
    });
  });

  test('of more than ten persons, and more than 20 % of those checked, who vanish within a day, work on', async () => {
    const real = await owner();
    const vanished: string[] = [];
    for (let i = 0; i < 15; i++) {
      const id = makeId('usr', Date.now() + i, randomBytes(10));
      await database.db.knex('users').insert({
        id,
        tenant_id: 'default',
        name: `vanished ${i}`,
        source: 'ldap',
        directory: DIRECTORY,
        directory_id: `entryuuid:00000000-0000-4000-8000-0000000000${String(i).padStart(2, '0')}`,
      });
      vanished.push(await addKey(database.db, id));
    }
    await lookUpAll();
    const statuses = await Promise.all(vanished.map((key) => statusOf(key)));
    expect(statuses.filter((status) => status === 401)).toHaveLength(10);
    expect(await statusOf(real.key)).toBe(200);
    expect(await audited('user.suspend')).toHaveLength(10);
    expect(failures).toMatchObject([{ directory: DIRECTORY, lookups: 5 }]);
    expect(String(failures[0]?.error)).toContain('user-search-base');
    expect(world.reports.filter(({ outcome }) => outcome === 'too_many_removed')).toHaveLength(5);
  });

  describe('are looked up', () => {
    const asked = (): number => world.reports.filter(({ operation }) => operation === 'lookup').length;

    test('once a day for each owner, by one of several processes', async () => {
      for (let i = 0; i < 12; i++) {
        const one = `many${++n}`;
        await world.add(one);
        const { id } = await owner(one);
        await addKey(database.db, id);
      }
      await aDayLater();
      world.reports.length = 0;
      const processes = Array.from({ length: 6 }, () => lookupsAt());
      const claimed = await Promise.all(processes.map((each) => each.run()));
      expect(claimed.reduce((sum, each) => sum + each, 0)).toBe(12);
      expect(asked()).toBe(12);
      expect(await lookups.run()).toBe(0);
    });

    test('at a second of the day that depends on the owner, and not within 12 hours after a login', async () => {
      const { id } = await owner();
      expect(await lookups.run()).toBe(0);
      const hours = async (ago: number): Promise<number> => {
        await database.db.knex.raw(
          `update users set directory_claimed_at = null, directory_checked_at = clock_timestamp() - cast(? as float8) * interval '1 hour'`,
          [ago],
        );
        return await lookups.run();
      };
      const { rows } = await database.db.knex.raw<{ rows: { since: number }[] }>(
        `select mod(mod(floor(extract(epoch from clock_timestamp()))::bigint - hashtext(?), 86400) + 86400, 86400)::float8 / 3600 as since`,
        [id],
      );
      const since = required(rows[0]).since;
      expect(await hours(11)).toBe(0);
      expect(await hours(24.5)).toBe(1);
      // Half an hour before the turn came, and after it.
      expect(await hours(since + 0.5)).toBe(since + 0.5 > 12 ? 1 : 0);
      expect(await hours(Math.max(since - 0.5, 0))).toBe(0);
    });

    test('not for an owner whose keys are all revoked or expired', async () => {
      const { id } = await owner();
      await database.db.knex('api_keys').where({ user_id: id }).update({ revoked_at: new Date() });
      await aDayLater();
      expect(await lookups.run()).toBe(0);
    });

    test('also for a user without keys, if a subject of an issuer proves it', async () => {
      const { id } = await owner();
      await database.db.knex('api_keys').where({ user_id: id }).delete();
      await aDayLater();
      expect(await lookups.run()).toBe(0);
      const issuer = makeId('iss', Date.now(), randomBytes(10));
      await database.db.knex.raw(
        `insert into issuers (id, tenant_id, name, kind, issuer, audiences, algorithms)
         values (:issuer, 'default', 'staff', 'oidc', 'https://' || :issuer, '{postern}', '{RS256}')`,
        { issuer },
      );
      await database.db.knex('user_identities').insert({ issuer_id: issuer, subject: 'ada', user_id: id });
      await world.remove(name);
      expect(await lookups.run()).toBe(1);
      expect(await shown(id)).toMatchObject({ directory_status: 'removed' });
      await database.db.knex('user_identities').where({ user_id: id }).delete();
      await database.db.knex('issuers').where({ id: issuer }).delete();
    });

    test('again when the process that had claimed the lookup ended before it was done', async () => {
      await owner();
      await aDayLater();
      await database.db.knex('users').update({ directory_claimed_at: new Date() });
      expect(await lookups.run()).toBe(0);
      await database.db.knex.raw(`update users set directory_claimed_at = clock_timestamp() - interval '16 minutes'`);
      expect(await lookupsAt().run()).toBe(1);
    });

    test('to no effect if the person logs in during the lookup', async () => {
      const { id, key } = await owner();
      const service = world.service();
      const late: typeof service = {
        ...service,
        directories: {
          ...service.directories,
          async lookup(directory, stableId) {
            await world.set(name, ...LOCKED);
            const answer = await service.directories.lookup(directory, stableId);
            await world.set(name, LOCKED[0], undefined);
            await login(name);
            return answer;
          },
        },
      };
      await aDayLater();
      expect(await lookupsAt(late).run()).toBe(1);
      expect(await statusOf(key)).toBe(200);
      expect(await shown(id)).toMatchObject({ directory_status: 'active' });
    });

    test('without a row or a connection held while the directory is slow, at most four at a time', async () => {
      for (let i = 0; i < 8; i++) {
        const one = `slow${++n}`;
        await world.add(one);
        await owner(one);
      }
      await aDayLater();
      const slow = lookupsAt(world.service({ timeoutMs: 1_500 }));
      world.setWire('hanging');
      const running = slow.run();
      await expect.poll(() => world.connections()).toBe(4);
      const { rows } = await database.db.knex.raw<{ rows: { n: number }[] }>(
        `select count(*)::int as n from pg_stat_activity where datname = current_database() and state like 'idle in transaction%'`,
      );
      expect(rows).toEqual([{ n: 0 }]);
      expect(await running).toBe(8);
      expect(failures).toMatchObject([{ directory: DIRECTORY, lookups: 8 }]);
      // The lookups then pause before the next request to the directory.
      await aDayLater();
      expect(await slow.run()).toBe(0);
    });

    test('in batches of at most 20 that reach every owner once', async () => {
      for (let i = 0; i < 45; i++) {
        const one = `walk${++n}`;
        await world.add(one);
        await owner(one);
      }
      await aDayLater();
      world.reports.length = 0;
      expect([await lookups.run(), await lookups.run(), await lookups.run(), await lookups.run()]).toEqual([
        20, 20, 5, 0,
      ]);
      expect(asked()).toBe(45);
    });
  });
});
