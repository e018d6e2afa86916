/**
 * The same logins at four real directories: Samba's Active Directory, OpenLDAP, 389 Directory Server, and FreeIPA's
 * tree on it.
 */

import { Attribute, Change, Client } from 'ldapts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openDirectories } from '../../src/directory/directories.ts';
import { createDirectoryService } from '../../src/iam/auth/directory-service.ts';
import { type Stand, startStand } from '../auth/stand.ts';
import { freshDatabase } from '../support/database.ts';
import { boundNames, comparable, INJECTIONS, searchedNames } from './injection.ts';
import { asked, type Cell, cellOf, expectedOf, personOf, ROWS } from './logins.ts';
import { printTable } from './print.ts';
import { KINDS, type Started, startServers } from './servers/all.ts';
import { tlsFor } from './servers/client.ts';
import { logOf } from './servers/log.ts';
import { groupDn, PASSWORD, PEOPLE, type Person, WRONG_PASSWORD } from './servers/people.ts';
import { adDn } from './servers/samba.ts';
import type { DirectoryKind, DirectoryServer } from './servers/server.ts';
import { startSlapd } from './servers/slapd.ts';
import { settingsFor } from './settings.ts';

const START_LIMIT_MS = 240_000;
const ROWS_LIMIT_MS = 180_000;
const GUID = Buffer.from('724840f8aa76694991a8621e8e3a902f', 'hex');

let started: Started | undefined;
const results = new Map<DirectoryKind, readonly Cell[]>();

beforeAll(async () => {
  started = await startServers();
}, START_LIMIT_MS);

afterAll(async () => {
  await started?.stop();
  const kinds = KINDS.filter((kind) => results.has(kind));
  const titles = kinds.map((kind) => started?.servers.get(kind)?.title ?? kind);
  printTable(
    ['login', ...titles],
    ROWS.map((row, i) => [row.name, ...kinds.map((kind) => results.get(kind)?.[i] ?? '')]),
  );
}, START_LIMIT_MS);

describe.each(KINDS)('%s', (kind) => {
  const serverOr = (skip: (why: string) => never): DirectoryServer =>
    started?.servers.get(kind) ?? skip(started?.missing.get(kind) ?? `no ${kind}`);

  test('every login has its expected result', { timeout: ROWS_LIMIT_MS }, async ({ skip }) => {
    const server = serverOr(skip);
    const cells: Cell[] = [];
    // One after the other: rows that lock, rename and move must not meet.
    for (const row of ROWS) cells.push(await row.run(server).catch((error: unknown) => `failed: ${String(error)}`));
    results.set(kind, cells);
    const named = (values: readonly Cell[]) => Object.fromEntries(ROWS.map((row, i) => [row.name, values[i]]));
    expect(named(cells)).toEqual(named(ROWS.map((row) => expectedOf(row, kind))));
  });

  test('the test of a login fails at the password or the account where the login is refused', {
    timeout: ROWS_LIMIT_MS,
  }, async ({ skip }) => {
    const server = serverOr(skip);
    const people: readonly Person[] = [PEOPLE.alice, PEOPLE.disabled, PEOPLE.expired, PEOPLE.oldPassword];
    const byPattern = { userDnPattern: kind === 'active-directory' ? '{0}@corp.example' : `uid={0},${server.people}` };
    for (const changes of [{}, byPattern])
      for (const { login: username, password } of people) {
        const directories = openDirectories([settingsFor(server, changes)]);
        const steps = await directories.test({ username, password });
        const isIn = (await directories.authenticate(username, password)).kind === 'proved';
        const places = 'userDnPattern' in changes ? /^(user_bind|attributes)$/ : /^user_bind$/;
        expect([username, steps.at(-1)]).toMatchObject([
          username,
          isIn ? { step: 'tenant', ok: true } : { step: expect.stringMatching(places), ok: false },
        ]);
        // Without a password, only the entry shows the state. FreeIPA's expiry is not in the answer to a bind either.
        if (kind !== 'freeipa' || username !== PEOPLE.expired.login) continue;
        expect((await directories.test({ username })).at(-1)).toMatchObject({ step: 'attributes', ok: false });
      }
  });

  test('an empty password or name is refused without a packet to the server', { timeout: ROWS_LIMIT_MS }, async ({
    skip,
  }) => {
    const server = serverOr(skip);
    const log = await logOf(server, async () => {
      const bob: Person = PEOPLE.bob;
      expect(cellOf(await asked(server, bob.login, ''))).toBe('empty_password');
      expect(cellOf(await asked(server, '', PASSWORD))).toBe('invalid_username');
      const userDnPattern = kind === 'active-directory' ? '{0}@corp.example' : `uid={0},${server.people}`;
      expect(cellOf(await asked(server, bob.login, '', { userDnPattern }))).toBe('empty_password');
      expect(cellOf(await asked(server, '', PASSWORD, { userDnPattern }))).toBe('invalid_username');
    });
    expect(log).toBe('');
  });

  // Samba does not look attributes up by their object identifiers.
  if (kind !== 'active-directory')
    test('a search filter may name attributes by object identifier and with options', {
      timeout: ROWS_LIMIT_MS,
    }, async ({ skip }) => {
      const server = serverOr(skip);
      const ask = async (userSearchFilter: string) =>
        cellOf(await asked(server, 'bob', PASSWORD, { userSearchFilter }));
      const usual = await ask('(uid={0})');
      expect(usual).toMatch(/^in/);
      expect(await ask('(0.9.2342.19200300.100.1.1={0})')).toBe(usual);
      expect(await ask('(&(2.5.4.0=*)(|(sn;lang-de={0})(0.9.2342.19200300.100.1.1={0})))')).toBe(usual);
      expect(await ask('(sn;lang-de={0})')).toBe('unknown_user');
    });

  test('any typed username is one escaped value of the search, and matches no user', {
    timeout: ROWS_LIMIT_MS,
  }, async ({ skip }) => {
    const server = serverOr(skip);
    const log = await logOf(server, async () => {
      for (const name of INJECTIONS)
        expect([name, cellOf(await asked(server, name, PASSWORD))]).toEqual([name, 'unknown_user']);
    });
    expect(searchedNames(server, log)).toEqual(INJECTIONS.map(comparable));
  });

  if (kind !== 'active-directory')
    test('any typed username is one escaped value of the bind DN', { timeout: ROWS_LIMIT_MS }, async ({ skip }) => {
      const server = serverOr(skip);
      const userDnPattern = `uid={0},${server.people}`;
      const log = await logOf(server, async () => {
        for (const name of INJECTIONS) {
          const cell = cellOf(await asked(server, name, PASSWORD, { userDnPattern }));
          expect([name, ['unknown_user', 'wrong_password', 'invalid_username'].includes(cell)]).toEqual([name, true]);
        }
      });
      expect(boundNames(server, log)).toEqual(INJECTIONS.map(comparable));
    });

  if (kind === 'active-directory')
    test('no typed username becomes another name in a UPN or after a domain', { timeout: ROWS_LIMIT_MS }, async ({
      skip,
    }) => {
      const server = serverOr(skip);
      for (const userDnPattern of ['{0}@corp.example', 'CORP\\{0}']) {
        for (const name of [...INJECTIONS, 'admin@corp.example\\x', 'CORP\\admin\\', 'admin@other.example']) {
          const answer = await asked(server, name, PASSWORD, { userDnPattern });
          expect([name, answer.kind]).toEqual([name, 'refused']);
        }
      }
    });

  test('the API gives the same answer to every rejected login', { timeout: ROWS_LIMIT_MS }, async ({ skip }) => {
    const server = serverOr(skip);
    await using stand = await standOn(server);
    const login = async (username: string, password: string) => {
      const { status, json } = await stand.post('/v1/auth/login', { auth_type: 'ldap', username, password });
      return { status, code: json['code'], answer: { ...json, request_id: '' } };
    };
    const local = await stand.post('/v1/auth/login', { email: 'nobody@corp.example', password: WRONG_PASSWORD });
    const refused: readonly (readonly [string, string])[] = [
      ['bob', WRONG_PASSWORD],
      ['nobody', PASSWORD],
      ['bob', ''],
      ...[PEOPLE.disabled, PEOPLE.expired, PEOPLE.locked].map(({ login: name }) => [name, PASSWORD] as const),
      ...INJECTIONS.map((name) => [name, PASSWORD] as const),
    ];
    expect(local.status).toBe(401);
    // All at once, as each is held back as long as the others take.
    const answers = await Promise.all(
      refused.map(async ([name, password]) => [name, await login(name, password)] as const),
    );
    for (const [name, { status, answer }] of answers) {
      expect([name, status, answer]).toEqual([name, 401, { ...local.json, request_id: '' }]);
    }
    for (const { login: name } of [PEOPLE.oldPassword, PEOPLE.mustChange]) {
      expect(await login(name, PASSWORD)).toMatchObject({ status: 403, code: 'password_expired' });
    }
    for (const one of [PEOPLE.alice, PEOPLE.cyrillic, PEOPLE.symbols, PEOPLE.unicode, PEOPLE.escaped, PEOPLE.big]) {
      expect([one.login, (await login(one.login, one.password)).status]).toEqual([one.login, 200]);
    }
  });

  test('a wrong password is refused where the right one logs in at the same moment', {
    timeout: ROWS_LIMIT_MS,
  }, async ({ skip }) => {
    const server = serverOr(skip);
    const directories = openDirectories([settingsFor(server)]);
    const logins = Array.from({ length: 20 }, (_, i) =>
      directories.authenticate('alice', i === 7 ? WRONG_PASSWORD : PASSWORD),
    );
    const kinds = (await Promise.all(logins)).map((answer) => answer.kind);
    expect(kinds).toEqual(kinds.map((_, i) => (i === 7 ? 'refused' : 'proved')));
  });
});

// After the logins, because they change entries.
describe('Active Directory', () => {
  const sambaOr = (skip: (why: string) => never): DirectoryServer =>
    started?.servers.get('active-directory') ?? skip(started?.missing.get('active-directory') ?? 'no Samba');
  const clientOf = async (server: DirectoryServer, dn: string, password: string): Promise<Client> => {
    const client = new Client({ url: server.secureUrl, tlsOptions: await tlsFor(server), timeout: 10_000 });
    await client.bind(dn, password);
    return client;
  };
  const replace = (type: string, value: string | Buffer): Change =>
    new Change({
      operation: 'replace',
      modification: new Attribute({ type, values: typeof value === 'string' ? [value] : [value] }),
    });

  test('does not name the bound account, and logs in a person by UPN and by the name with the domain', {
    timeout: ROWS_LIMIT_MS,
  }, async ({ skip }) => {
    const server = sambaOr(skip);
    for (const userDnPattern of ['{0}@corp.example', 'CORP\\{0}'])
      expect(cellOf(await asked(server, 'alice', PASSWORD, { userDnPattern }))).toBe('in: analyst auditor developer');
  });

  test('gives one name to no two accounts of its domain', { timeout: ROWS_LIMIT_MS }, async ({ skip }) => {
    const server = sambaOr(skip);
    const client = await clientOf(server, server.manager.dn, server.manager.password);
    const give = (one: Person, type: string, value: string): Promise<void> =>
      client.modify(adDn(one), replace(type, value));
    try {
      const { symbols, unique } = PEOPLE;
      const taken = give(symbols, 'userPrincipalName', `${unique.login}@corp.example`);
      await expect(taken).rejects.toThrow(/already in use/);
      await give(symbols, 'userPrincipalName', 'zed@corp.example');
      await expect(give(unique, 'sAMAccountName', 'zed')).rejects.toThrow(/already in use/);
    } finally {
      await client.unbind();
    }
  });

  test('lets people write neither who they are nor which groups they are in', { timeout: ROWS_LIMIT_MS }, async ({
    skip,
  }) => {
    const server = sambaOr(skip);
    const one = PEOPLE.sameName;
    const before = await personOf(server, one.login);
    expect(before.stableId).toMatch(/^objectguid:/);
    const client = await clientOf(server, adDn(one), PASSWORD);
    const attempts: Readonly<Record<string, string | Buffer>> = {
      sAMAccountName: 'alice2',
      userPrincipalName: 'alice@corp.example',
      objectGUID: GUID,
      objectSid: GUID,
      primaryGroupID: '512',
      memberOf: groupDn(server, 'engineers'),
      userAccountControl: '66048',
    };
    try {
      for (const [type, value] of Object.entries(attempts))
        await expect(client.modify(adDn(one), replace(type, value)), type).rejects.toThrow();
    } finally {
      await client.unbind();
    }
    expect(await personOf(server, one.login)).toEqual(before);
  });
});

/** Starts Postern's HTTP server with this directory, and without users. */
async function standOn(server: DirectoryServer): Promise<Pick<Stand, 'post'> & AsyncDisposable> {
  const database = await freshDatabase();
  await database.db.knex('tenants').insert({ id: 'default', name: 'default' }).onConflict('id').ignore();
  const stand = await startStand(database.url, {
    directory: createDirectoryService({ directories: openDirectories([settingsFor(server)]), names: [server.kind] }),
    login: { failuresPerAddress: 10_000, failuresPerAccount: 10_000 },
  });
  return {
    post: stand.post,
    async [Symbol.asyncDispose]() {
      await stand.close();
      await database.close();
    },
  };
}

test('a server that takes a bind without a password for an anonymous one is never sent one', {
  timeout: ROWS_LIMIT_MS,
}, async ({ skip }) => {
  const missing = started?.missing.get('openldap');
  if (missing !== undefined) return skip(missing);
  const server = await startSlapd({ allowUnauthenticated: true, small: true });
  try {
    const client = new Client({ url: server.secureUrl, tlsOptions: await tlsFor(server) });
    await expect(client.bind(`uid=alice,${server.people}`, '')).resolves.toBeUndefined();
    await client.unbind();
    const log = await logOf(server, async () => {
      expect(cellOf(await asked(server, 'alice', ''))).toBe('empty_password');
      const userDnPattern = `uid={0},${server.people}`;
      expect(cellOf(await asked(server, 'alice', '', { userDnPattern }))).toBe('empty_password');
    });
    expect(log).toBe('');
  } finally {
    await server.stop();
  }
});
