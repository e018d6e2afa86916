/**
 * People who write into their own entries what would make them another person, at real servers that let them: OpenLDAP
 * with the schemas dsee and msuser, 389 Directory Server, FreeIPA's tree on it. Active Directory does not let them
 * (table.test.ts).
 */

import { Attribute, Change, Client } from 'ldapts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openDirectories } from '../../src/directory/directories.ts';
import type { DirectoryPerson } from '../../src/directory/model.ts';
import type { DirectorySettings } from '../../src/directory/settings.ts';
import { createDirectoryService } from '../../src/iam/auth/directory-service.ts';
import { startStand } from '../auth/stand.ts';
import { freshDatabase } from '../support/database.ts';
import { asked, cellOf } from './logins.ts';
import { tlsFor } from './servers/client.ts';
import { startDs389 } from './servers/ds389.ts';
import { findParts } from './servers/packages.ts';
import { groupDn, PASSWORD, PEOPLE, type Person, uidDn } from './servers/people.ts';
import type { DirectoryServer } from './servers/server.ts';
import { startSlapd } from './servers/slapd.ts';
import { settingsFor } from './settings.ts';

const START_LIMIT_MS = 240_000;
const LIMIT_MS = 60_000;
const NS_ID = 'fc0e1104-e5ce11f1-bff59b6b-340761da';
const GUID = Buffer.from('724840f8aa76694991a8621e8e3a902f', 'hex');
const UUID = '7bcf4613-b4be-49bc-9311-22def1a85965';

type Values = Readonly<Record<string, readonly (string | Buffer)[]>>;

const missing = await findParts(['openldap', '389ds']);
const why = [...missing.values()].join(' ');
if (missing.size > 0 && process.env['CI'] === 'true') throw new Error(why);

describe.skipIf(missing.size > 0)(`people who write their own entries${why === '' ? '' : `: ${why}`}`, () => {
  let openldap: DirectoryServer;
  /** With the memberOf overlay's own definition of the attribute. */
  let plain: DirectoryServer;
  let ds389: DirectoryServer;
  let freeipa: DirectoryServer;
  beforeAll(async () => {
    [openldap, plain, ds389, freeipa] = await Promise.all([
      startSlapd({ selfWrite: true }),
      startSlapd(),
      startDs389({ selfWrite: true }),
      startDs389({ selfWrite: true, freeIpa: true }),
    ]);
  }, START_LIMIT_MS);
  afterAll(async () => {
    await Promise.all([openldap, plain, ds389, freeipa].map((server) => server?.stop()));
  }, START_LIMIT_MS);

  /** As the person, whose entry may then hold any attribute. */
  async function writeOwn(server: DirectoryServer, one: Person, values: Values): Promise<void> {
    const client = new Client({ url: server.secureUrl, tlsOptions: await tlsFor(server), timeout: 10_000 });
    const dn = uidDn(server, one);
    try {
      await client.bind(dn, one.password);
      await client.modify(dn, change('add', 'objectClass', ['extensibleObject'])).catch(ignored);
      for (const [type, list] of Object.entries(values)) await client.modify(dn, change('replace', type, list));
    } finally {
      await client.unbind();
    }
  }

  async function personOf(
    server: DirectoryServer,
    name: string,
    changes: Partial<DirectorySettings> = {},
  ): Promise<DirectoryPerson> {
    const answer = await asked(server, name, PASSWORD, changes);
    if (answer.kind !== 'proved') throw new Error(`${name} cannot log in: ${cellOf(answer)}`);
    return answer.person;
  }

  const byPattern = (server: DirectoryServer) => ({ userDnPattern: `uid={0},${server.people}` });

  describe.each(['openldap', '389ds', 'freeipa'] as const)('%s', (kind) => {
    const serverOf = () => ({ openldap, '389ds': ds389, freeipa })[kind];

    const spellings: readonly (readonly [string, Values])[] = [
      ['after', { uid: ['bob', 'paul'] }],
      ['before', { uid: ['paul', 'bob'] }],
      ['in another language than', { uid: ['bob'], 'uid;lang-en': ['paul'] }],
    ];
    test.each(spellings)(
      'an entry with a colleague’s username %s its own is rejected at login, refresh and test',
      { timeout: LIMIT_MS },
      async (_, names) => {
        const server = serverOf();
        const before = await personOf(server, 'bob');
        try {
          await writeOwn(server, PEOPLE.bob, names);
          for (const changes of [{}, byPattern(server)]) {
            expect(await asked(server, 'bob', PASSWORD, changes)).toEqual({
              kind: 'refused',
              reason: 'several_names',
              directory: kind,
              detail: expect.stringMatching(/^uid=bob,.* has 2 values of uid$/),
            });
          }
          // Neither of the two is the one entry with that name.
          expect(cellOf(await asked(server, 'paul', PASSWORD))).toBe('ambiguous_user');
          const directories = openDirectories([settingsFor(server)]);
          expect(await directories.lookup(kind, before.stableId)).toEqual({ kind: 'gone', reason: 'several_names' });
          const steps = await directories.test({ username: 'bob', password: PASSWORD });
          expect(steps.at(-1)).toMatchObject({
            step: 'attributes',
            ok: false,
            detail: expect.stringContaining('2 values of uid'),
            advice: expect.stringContaining('do not allow users to write'),
          });
        } finally {
          await writeOwn(server, PEOPLE.bob, { uid: ['bob'], 'uid;lang-en': [] });
        }
        expect(await personOf(server, 'bob')).toEqual(before);
      },
    );

    test('an entry with a colleague’s username in place of its own gets none of the colleague’s groups', {
      timeout: LIMIT_MS,
    }, async () => {
      const server = serverOf();
      const named = PEOPLE.umlaut;
      const groups = { groupSearchBase: server.groups };
      const mail = { userSearchFilter: '(|(uid={0})(mail={0}))' };
      const login = (changes: Partial<DirectorySettings>, name: string) =>
        asked(server, name, PASSWORD, { ...groups, ...changes });
      const both = [
        () => login({ userDnPattern: `cn={0},${server.people}` }, named.cn),
        () => login(mail, 'umlaut@corp.example'),
      ] as const;
      const { stableId } = await personOf(server, named.login);
      try {
        await writeOwn(server, named, { uid: [PEOPLE.posix.login] });
        for (const one of both) expect(await one()).toMatchObject({ kind: 'refused', reason: 'ambiguous_user' });
        const directories = openDirectories([settingsFor(server, groups)]);
        expect(await directories.lookup(kind, stableId)).toEqual({ kind: 'gone', reason: 'ambiguous_user' });
      } finally {
        await writeOwn(server, named, { uid: [named.login] });
      }
      for (const one of both) expect(await one()).toMatchObject({ kind: 'proved', person: { stableId } });
    });

    test('identity attributes of other types of directory do not change the identity', {
      timeout: LIMIT_MS,
    }, async () => {
      const server = serverOf();
      const before = [await personOf(server, 'alice'), await personOf(server, 'bob')];
      const own = { openldap: 'entryUUID', '389ds': 'nsUniqueId', freeipa: 'ipaUniqueID' }[kind];
      const others = { objectGUID: [GUID], ipaUniqueID: [UUID], nsUniqueId: [NS_ID], entryUUID: [UUID] };
      for (const [type, values] of Object.entries(others).filter(([name]) => name !== own)) {
        // The second takes what the first has. Not every server knows every attribute, or lets it be written.
        for (const one of [PEOPLE.alice, PEOPLE.bob]) await writeOwn(server, one, { [type]: values }).catch(ignored);
      }
      const type = kind === 'freeipa' ? { type: kind } : {};
      expect([await personOf(server, 'alice', type), await personOf(server, 'bob', type)]).toEqual(before);
      for (const { stableId } of before)
        expect(stableId).toMatch(new RegExp(`^${own.toLowerCase()}:[0-9a-f-]{35,36}$`));
    });

    test('memberOf that people wrote themselves gives no group where groups are searched', {
      timeout: LIMIT_MS,
    }, async () => {
      const server = serverOf();
      const searched = { memberOf: kind === 'openldap' ? 'auto' : 'searched', groupSearchBase: server.groups } as const;
      await writeOwn(server, PEOPLE.moved, { memberOf: [] });
      const before = await personOf(server, PEOPLE.bob.login, searched);
      try {
        await writeOwn(server, PEOPLE.bob, { memberOf: [groupDn(server, 'engineers')] });
        expect(await personOf(server, PEOPLE.bob.login, searched)).toEqual(before);
        expect(before.roles).not.toContain('developer');
        // That the server lets it be written is what this is about.
        const trusted = await personOf(server, PEOPLE.bob.login, { memberOf: 'trusted' });
        expect(trusted.roles).toContain('developer');
      } finally {
        await writeOwn(server, PEOPLE.bob, { memberOf: [] });
      }
    });
  });

  test('OpenLDAP: a deactivated user stays the same user, and deactivated, after a change of any attribute of its entry', {
    timeout: LIMIT_MS,
  }, async () => {
    await using database = await openDatabase();
    const directory = createDirectoryService({
      directories: openDirectories([settingsFor(openldap)]),
      names: ['openldap'],
    });
    const stand = await startStand(database.url, { directory });
    const login = () => stand.post('/v1/auth/login', { auth_type: 'ldap', username: 'nina', password: PASSWORD });
    try {
      expect((await login()).status).toBe(200);
      await database.db.knex('users').where({ source: 'ldap' }).update({ status: 'deactivated' });
      await writeOwn(openldap, PEOPLE.nested, { nsUniqueId: [NS_ID], objectGUID: [GUID], mail: ['new@corp.example'] });
      expect((await login()).status).toBe(401);
      expect(await database.db.knex('users').where({ source: 'ldap' }).select('status')).toEqual([
        { status: 'deactivated' },
      ]);
    } finally {
      await stand.close();
    }
  });

  test.each(['entryUUID at OpenLDAP', 'nsUniqueId at 389 Directory Server'])(
    '%s cannot be written',
    { timeout: LIMIT_MS },
    async (which) => {
      const [server, values] = which.startsWith('entry')
        ? ([openldap, { entryUUID: [UUID] }] as const)
        : ([ds389, { nsUniqueId: [NS_ID] }] as const);
      const { stableId } = await personOf(server, 'alice');
      await expect(writeOwn(server, PEOPLE.alice, values)).rejects.toThrow();
      expect((await personOf(server, 'alice')).stableId).toBe(stableId);
    },
  );

  test('OpenLDAP: a user stored under another attribute is a fault, although an entry has that value', {
    timeout: LIMIT_MS,
  }, async () => {
    await writeOwn(openldap, PEOPLE.cycle, { nsUniqueId: [NS_ID] });
    const directories = openDirectories([settingsFor(openldap)]);
    await expect(directories.lookup('openldap', `nsuniqueid:${NS_ID}`)).rejects.toThrow(
      /is stored under nsUniqueId, and people of the type openldap are identified by entryUUID/,
    );
  });

  test('OpenLDAP: the overlay’s own memberOf cannot be written, and counts with member-of: trusted', {
    timeout: LIMIT_MS,
  }, async () => {
    const client = new Client({ url: plain.secureUrl, tlsOptions: await tlsFor(plain), timeout: 10_000 });
    try {
      await client.bind(plain.manager.dn, plain.manager.password);
      const dn = uidDn(plain, PEOPLE.bob);
      await client.modify(dn, change('add', 'objectClass', ['extensibleObject']));
      const written = client.modify(dn, change('add', 'memberOf', [groupDn(plain, 'engineers')]));
      await expect(written).rejects.toThrow(/no user modification allowed/);
    } finally {
      await client.unbind();
    }
    const trusted = { memberOf: 'trusted', groupSearchBase: undefined, groupSearchFilter: undefined } as const;
    const answers = [await personOf(plain, 'alice', trusted), await personOf(plain, 'alice')];
    expect(answers.map(({ groups }) => groups)).toEqual([answers[0]?.groups, answers[0]?.groups]);
    expect(answers[0]?.roles).toEqual(['analyst', 'auditor', 'developer']);
  });

  test('FreeIPA: an entry with two values of ipaUniqueID is refused at login and refresh', {
    timeout: LIMIT_MS,
  }, async () => {
    const { stableId } = await personOf(freeipa, PEOPLE.renamed.login);
    await writeOwn(freeipa, PEOPLE.renamed, { ipaUniqueID: [stableId.slice('ipauniqueid:'.length), UUID] });
    for (const changes of [{}, byPattern(freeipa)]) {
      expect(await asked(freeipa, PEOPLE.renamed.login, PASSWORD, changes)).toMatchObject({
        reason: 'several_ids',
        detail: expect.stringContaining('2 values of ipaUniqueID'),
      });
    }
    for (const id of [stableId, `ipauniqueid:${UUID}`])
      expect(await openDirectories([settingsFor(freeipa)]).lookup('freeipa', id)).toEqual({
        kind: 'gone',
        reason: 'several_ids',
      });
  });
});

const ignored = (): void => undefined;

function change(operation: 'add' | 'replace', type: string, values: readonly (string | Buffer)[]): Change {
  const isText = (value: string | Buffer): value is string => typeof value === 'string';
  const texts = values.filter(isText);
  const modification = new Attribute({
    type,
    values: texts.length === values.length ? texts : values.map((value) => Buffer.from(value)),
  });
  return new Change({ operation, modification });
}

async function openDatabase() {
  const database = await freshDatabase();
  await database.db.knex('tenants').insert({ id: 'default', name: 'default' }).onConflict('id').ignore();
  return Object.assign(database, { [Symbol.asyncDispose]: () => database.close() });
}
