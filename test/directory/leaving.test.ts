/**
 * The keys of people who leave four real directories, and of people whom a directory hides from the service account.
 */

import { Attribute, Change, Client } from 'ldapts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openDirectories } from '../../src/directory/directories.ts';
import type { DirectorySettings } from '../../src/directory/settings.ts';
import type { UserId } from '../../src/domain/ids.ts';
import { createDirectoryService } from '../../src/iam/auth/directory-service.ts';
import { DirectoryLookups, type LookupFailure } from '../../src/iam/directory/lookups.ts';
import { addKey, addPerson } from '../auth/people.ts';
import { bearer, type Stand, startStand } from '../auth/stand.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { KINDS, type Started, startServers } from './servers/all.ts';
import { tlsFor } from './servers/client.ts';
import { groupDn, PEOPLE, type Person, uidDn } from './servers/people.ts';
import { adDn } from './servers/samba.ts';
import type { DirectoryKind, DirectoryServer } from './servers/server.ts';
import { BLIND } from './servers/slapd.ts';
import { settingsFor } from './settings.ts';

const START_LIMIT_MS = 240_000;
const LIMIT_MS = 180_000;

let started: Started | undefined;
beforeAll(async () => {
  started = await startServers();
}, START_LIMIT_MS);
afterAll(() => started?.stop(), START_LIMIT_MS);

/** 2020, in tenths of microseconds since 1601. */
const LONG_AGO = '132223104000000000';

/** The changes of an account by an administrator, for each kind of directory. */
const STATES: Readonly<
  Record<DirectoryKind, Readonly<Record<'disable' | 'enable' | 'expire', readonly [string, string | undefined]>>>
> = {
  'active-directory': {
    disable: ['userAccountControl', '514'],
    enable: ['userAccountControl', '512'],
    expire: ['accountExpires', LONG_AGO],
  },
  openldap: {
    disable: ['pwdAccountLockedTime', '000001010000Z'],
    enable: ['pwdAccountLockedTime', undefined],
    expire: ['pwdEndTime', '20200101000000Z'],
  },
  freeipa: {
    disable: ['nsAccountLock', 'TRUE'],
    enable: ['nsAccountLock', undefined],
    expire: ['krbPrincipalExpiration', '20200101000000Z'],
  },
  '389ds': {
    disable: ['nsAccountLock', 'TRUE'],
    enable: ['nsAccountLock', undefined],
    expire: ['passwordExpirationTime', '20200101000000Z'],
  },
};

describe.each(KINDS)('%s', (kind) => {
  const serverOr = (skip: (why: string) => never): DirectoryServer =>
    started?.servers.get(kind) ?? skip(started?.missing.get(kind) ?? `no ${kind}`);

  test('a key stays valid while its owner is hidden from the service account', { timeout: LIMIT_MS }, async ({
    skip,
  }) => {
    const server = serverOr(skip);
    await using world = await worldOf(server);
    const bob = await world.owner(PEOPLE.bob);
    for (const [why, hiding] of Object.entries(hidingAt(server))) {
      await world.lookUpPerson(hiding);
      expect([why, await world.statusOf(bob), world.failures.length]).toEqual([why, 200, 1]);
    }
    if (kind === '389ds' || kind === 'freeipa') {
      // Without its rights, the service account gets an empty answer and no error, also for the search base.
      for (const target of [
        '',
        '(targetfilter="(|(objectClass=domain)(objectClass=organizationalUnit)(objectClass=nsContainer))")',
      ]) {
        const aci = `${target}(targetattr!="userPassword || aci")(version 3.0; acl "read"; allow (read,search,compare) userdn="ldap:///${target === '' ? 'self' : 'all'}";)`;
        const restore = await replaceAci(server, aci);
        await world.lookUpPerson();
        await restore();
        expect([target, await world.statusOf(bob), world.failures.length]).toEqual([target, 200, 1]);
      }
    }
    await world.lookUpPerson();
    expect([await world.statusOf(bob), world.failures]).toEqual([200, []]);
    expect(await world.suspensions()).toEqual([]);
  });

  test('a login succeeds although another user has the email address', { timeout: LIMIT_MS }, async ({ skip }) => {
    const server = serverOr(skip);
    await using world = await worldOf(server);
    const local = await addPerson(world.database.db, { email: 'alice@corp.example' });
    expect((await world.owner(PEOPLE.alice)).email).toBeNull();
    await world.database.db.knex('users').where({ id: local }).delete();
    await world.lookUpPerson();
    const rows: unknown = await world.database.db.knex('users').select('email', 'email_conflict');
    expect(rows).toEqual([{ email: 'alice@corp.example', email_conflict: null }]);
  });

  // OpenLDAP reports a disabled account as locked, and any client can lock an account.
  if (kind !== 'openldap')
    test('a login that is rejected because the account is disabled stops the keys at once', {
      timeout: LIMIT_MS,
    }, async ({ skip }) => {
      const server = serverOr(skip);
      await using world = await worldOf(server);
      const { disable, enable } = STATES[kind];
      const pavel = await world.owner(PEOPLE.unicode);
      await changing(server, (client) => client.modify(dnOf(server, PEOPLE.unicode), change(disable)));
      expect(await world.logIn(PEOPLE.unicode)).toBe(401);
      expect(await world.statusOf(pavel)).toBe(401);
      expect(await world.suspensions()).toEqual(['disabled']);
      await changing(server, (client) => client.modify(dnOf(server, PEOPLE.unicode), change(enable)));
      expect(await world.logIn(PEOPLE.unicode)).toBe(200);
      expect(await world.statusOf(pavel)).toBe(200);
    });

  test('keys of users that are removed, disabled or expired in the directory are rejected, and valid again after the users return', {
    timeout: LIMIT_MS,
  }, async ({ skip }) => {
    const server = serverOr(skip);
    await using world = await worldOf(server);
    const [gone, off, over, stays] = [PEOPLE.renamed, PEOPLE.moved, PEOPLE.nested, PEOPLE.alice];
    const owners = [await world.owner(gone), await world.owner(off), await world.owner(over), await world.owner(stays)];
    const { disable, enable, expire } = STATES[kind];
    await changing(server, async (client) => {
      await client.del(dnOf(server, gone));
      await client.modify(dnOf(server, off), change(disable));
      await client.modify(dnOf(server, over), change(expire));
      const engineers = new Attribute({ type: 'member', values: [dnOf(server, stays)] });
      await client.modify(groupDn(server, 'engineers'), new Change({ operation: 'delete', modification: engineers }));
    });
    await world.lookUpPerson();
    expect(world.failures).toEqual([]);
    expect(await Promise.all(owners.map((owner) => world.statusOf(owner)))).toEqual([401, 401, 401, 200]);
    expect(await world.suspensions()).toEqual(['removed', 'disabled', 'expired']);
    // The same lookup removes the groups that the user left.
    expect(await world.rolesOf(owners[3])).toEqual([]);
    await changing(server, (client) => client.modify(dnOf(server, off), change(enable)));
    await world.lookUpPerson();
    expect(await Promise.all(owners.map((owner) => world.statusOf(owner)))).toEqual([401, 200, 401, 200]);
    expect(await world.rolesOf(owners[1])).toEqual(['analyst', 'auditor', 'developer']);
  });
});

function hidingAt(server: DirectoryServer): Readonly<Record<string, Partial<DirectorySettings>>> {
  return {
    'a search base that is not there': { userSearchBase: `ou=nowhere,${server.suffix}` },
    'a filter that finds nobody': { userSearchFilter: '(&(objectClass=person)(description=nobody)(cn={0}))' },
    'another password of the service account': { serviceAccount: { dn: server.service.dn, password: 'changed' } },
    ...(server.kind === 'openldap'
      ? { 'no right to read people': { serviceAccount: BLIND, userSearchBase: server.people } }
      : {}),
  };
}

interface Owner {
  readonly id: UserId;
  readonly key: string;
  readonly email: unknown;
}

interface World extends AsyncDisposable {
  readonly database: FreshDatabase;
  /** The failures of the last lookups. */
  readonly failures: readonly LookupFailure[];
  /** Logs the person in and makes a key. */
  owner(person: Person): Promise<Owner>;
  logIn(person: Person): Promise<number>;
  statusOf(owner: Owner): Promise<number>;
  rolesOf(owner: Owner | undefined): Promise<readonly string[]>;
  suspensions(): Promise<readonly unknown[]>;
  /** Looks up every user, as a day later. */
  lookUpPerson(changes?: Partial<DirectorySettings>): Promise<void>;
}

async function worldOf(server: DirectoryServer): Promise<World> {
  const database = await freshDatabase();
  const { knex } = database.db;
  await knex('tenants').insert({ id: 'default', name: 'default' }).onConflict('id').ignore();
  const roomWith = (changes: Partial<DirectorySettings> = {}) =>
    createDirectoryService({ directories: openDirectories([settingsFor(server, changes)]), names: [server.kind] });
  const stand: Stand = await startStand(database.url, { directory: roomWith() });
  const failures: LookupFailure[] = [];
  return {
    database,
    failures,
    async owner({ login: username, password }) {
      const session = await stand.post('/v1/auth/login', { auth_type: 'ldap', username, password });
      expect([username, session.status]).toEqual([username, 200]);
      const me = await stand.get('/v1/auth/me', bearer(session));
      const user = await knex<{ id: UserId }>('users').where('id', String(me.json['id'])).first('id');
      if (user === undefined) throw new Error('no user was made');
      const owner = { id: user.id, key: await addKey(database.db, user.id), email: me.json['email'] };
      expect((await stand.get('/v1/auth/me', { authorization: `Bearer ${owner.key}` })).status).toBe(200);
      return owner;
    },
    logIn: async ({ login: username, password }) =>
      (await stand.post('/v1/auth/login', { auth_type: 'ldap', username, password })).status,
    statusOf: async ({ key }) => (await stand.get('/v1/auth/me', { authorization: `Bearer ${key}` })).status,
    async rolesOf(owner) {
      const rows = await knex<{ user_id: string; role_name: string }>('user_roles')
        .where('user_id', owner?.id ?? '')
        .orderBy('role_name');
      return rows.map((row) => row.role_name);
    },
    async suspensions() {
      const rows = await knex<{ directory_suspension: string | null }>('users')
        .whereNotNull('directory_suspension')
        .orderBy('id');
      return rows.map((row) => row.directory_suspension);
    },
    async lookUpPerson(changes = {}) {
      failures.length = 0;
      await knex('users').update({
        directory_checked_at: knex.raw(`clock_timestamp() - interval '2 days'`),
        directory_claimed_at: null,
      });
      const lookups = new DirectoryLookups(stand.parts, roomWith(changes), (failure) => failures.push(failure));
      while ((await lookups.run()) > 0);
    },
    async [Symbol.asyncDispose]() {
      await stand.close();
      await database.close();
    },
  };
}

function dnOf(server: DirectoryServer, one: Person): string {
  return server.kind === 'active-directory' ? adDn(one) : uidDn(server, one);
}

function change([type, value]: readonly [string, string | undefined]): Change {
  const modification = new Attribute({ type, values: value === undefined ? [] : [value] });
  return new Change({ operation: 'replace', modification });
}

/** @returns how to put back what was there */
async function replaceAci(server: DirectoryServer, aci: string): Promise<() => Promise<void>> {
  let before: readonly string[] = [];
  await changing(server, async (client) => {
    const { searchEntries } = await client.search(server.suffix, { scope: 'base', attributes: ['aci'] });
    before = [searchEntries[0]?.['aci'] ?? []].flat().map(String);
    await client.modify(server.suffix, change(['aci', aci]));
  });
  const restored = new Attribute({ type: 'aci', values: [...before] });
  return () =>
    changing(server, (client) =>
      client.modify(server.suffix, new Change({ operation: 'replace', modification: restored })),
    );
}

async function changing(server: DirectoryServer, work: (client: Client) => Promise<void>): Promise<void> {
  const client = new Client({ url: server.secureUrl, tlsOptions: await tlsFor(server), timeout: 10_000 });
  try {
    await client.bind(server.manager.dn, server.manager.password);
    await work(client);
  } finally {
    await client.unbind();
  }
}
