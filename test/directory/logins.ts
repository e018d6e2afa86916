/** The logins that the tests try at every directory, one row each, with their expected results. */

import { Attribute, Change, Client } from 'ldapts';
import { openDirectories } from '../../src/directory/directories.ts';
import type { DirectoryAnswer, DirectoryPerson } from '../../src/directory/model.ts';
import type { DirectorySettings } from '../../src/directory/settings.ts';
import { tlsFor } from './servers/client.ts';
import { PASSWORD, PEOPLE, type Person, type PersonKey, uidDn, WRONG_PASSWORD } from './servers/people.ts';
import { adDn } from './servers/samba.ts';
import type { DirectoryKind, DirectoryServer } from './servers/server.ts';
import { settingsFor } from './settings.ts';

/** The result of a row, in few words; `–` if the row does not apply to this kind of directory. */
export type Cell = string;
export const NOTHING: Cell = '–';

export interface Row {
  readonly name: string;
  run(server: DirectoryServer): Promise<Cell>;
  /** For all kinds, or for each. */
  readonly expected: Cell | Readonly<Record<DirectoryKind, Cell>>;
}

export function expectedOf(row: Row, kind: DirectoryKind): Cell {
  return typeof row.expected === 'string' ? row.expected : row.expected[kind];
}

export function asked(
  server: DirectoryServer,
  username: string,
  password: string,
  changes: Partial<DirectorySettings> = {},
): Promise<DirectoryAnswer> {
  return openDirectories([settingsFor(server, changes)]).authenticate(username, password);
}

export function cellOf(answer: DirectoryAnswer): Cell {
  switch (answer.kind) {
    case 'proved':
      return answer.person.roles.length === 0 ? 'in, no roles' : `in: ${answer.person.roles.join(' ')}`;
    case 'password_expired':
      return `password: ${answer.reason}`;
    case 'refused':
      return answer.reason;
    default:
      return answer satisfies never;
  }
}

const ENGINEER = 'in: analyst auditor developer';

function login(name: string, key: PersonKey, expected: Row['expected'], password?: string): Row {
  const one: Person = PEOPLE[key];
  return { name, expected, run: async (server) => cellOf(await asked(server, one.login, password ?? one.password)) };
}

function pattern(server: DirectoryServer): string {
  return server.kind === 'active-directory' ? '{0}@corp.example' : `uid={0},${server.people}`;
}

export const ROWS: readonly Row[] = [
  login('good', 'alice', ENGINEER),
  {
    name: 'good, by the pattern',
    expected: ENGINEER,
    run: async (server) => cellOf(await asked(server, 'alice', PASSWORD, { userDnPattern: pattern(server) })),
  },
  {
    name: 'good, by CORP\\{0}',
    expected: { ...every(NOTHING), 'active-directory': ENGINEER },
    run: async (server) =>
      server.kind === 'active-directory'
        ? cellOf(await asked(server, 'alice', PASSWORD, { userDnPattern: 'CORP\\{0}' }))
        : NOTHING,
  },
  {
    name: 'good, typed with the domain',
    expected: { ...every(NOTHING), 'active-directory': `${ENGINEER}, twice` },
    run: async (server) => {
      if (server.kind !== 'active-directory') return NOTHING;
      const cells = [
        await asked(server, 'CORP\\alice', PASSWORD),
        await asked(server, 'alice@corp.example', PASSWORD),
      ].map(cellOf);
      return cells[0] === cells[1] ? `${cells[0]}, twice` : cells.join(' / ');
    },
  },
  login('wrong', 'bob', 'wrong_password', WRONG_PASSWORD),
  {
    name: 'wrong, by the pattern',
    expected: 'wrong_password',
    run: async (server) => cellOf(await asked(server, 'bob', WRONG_PASSWORD, { userDnPattern: pattern(server) })),
  },
  login('empty', 'bob', 'empty_password', ''),
  { name: 'unknown', expected: 'unknown_user', run: async (server) => cellOf(await asked(server, 'nobody', PASSWORD)) },
  login('disabled', 'disabled', { ...every('disabled'), openldap: 'locked' }),
  login('account expired', 'expired', { ...every('expired'), openldap: 'locked' }),
  login('password expired', 'oldPassword', 'password: expired'),
  login('password expired, wrong', 'oldPassword', 'wrong_password', WRONG_PASSWORD),
  login('must change', 'mustChange', 'password: must_change'),
  login('must change, wrong', 'mustChange', 'wrong_password', WRONG_PASSWORD),
  {
    name: 'locked after three wrong',
    expected: 'locked',
    run: async (server) => {
      for (let i = 0; i < 3; i++) await asked(server, PEOPLE.locked.login, WRONG_PASSWORD);
      return cellOf(await asked(server, PEOPLE.locked.login, PASSWORD));
    },
  },
  login('nested groups', 'nested', ENGINEER),
  {
    name: 'nested groups not followed',
    expected: { ...every('in: developer'), freeipa: ENGINEER, '389ds': ENGINEER },
    run: async (server) => cellOf(await asked(server, PEOPLE.nested.login, PASSWORD, { nestedGroups: false })),
  },
  login('primary group', 'primary', { ...every('in, no roles'), 'active-directory': 'in: operator' }),
  {
    name: 'group of 3,000',
    expected: 'in: crowd',
    // From the top of the tree, so that every group is looked at.
    run: async (server) => cellOf(await asked(server, PEOPLE.big.login, PASSWORD, { groupSearchBase: undefined })),
  },
  login('groupOfUniqueNames', 'unique', {
    ...every('in: reviewer'),
    'active-directory': 'in, no roles',
    freeipa: 'in, no roles',
  }),
  login('posixGroup', 'posix', {
    ...every('in: printer'),
    'active-directory': 'in, no roles',
    freeipa: 'in, no roles',
  }),
  login('same first RDN elsewhere', 'sameName', 'in, no roles'),
  login('group cycle', 'cycle', 'in: ring'),
  login('DN with comma and parentheses', 'escaped', 'in: analyst auditor core developer'),
  login('name: jürgen', 'umlaut', ENGINEER),
  login('name: ольга', 'cyrillic', ENGINEER),
  login('password: ()*\\…', 'symbols', ENGINEER),
  login('password: Пароль…', 'unicode', ENGINEER),
  {
    name: 'renamed',
    expected: `same id, ${ENGINEER}; old name unknown_user`,
    async run(server) {
      const before = await personOf(server, PEOPLE.renamed.login);
      await rename(server, PEOPLE.renamed, { login: 'renate', cn: 'Renate New' });
      const after = await asked(server, 'renate', PASSWORD);
      const old = await asked(server, PEOPLE.renamed.login, PASSWORD);
      return `${compared(before, after)}; old name ${cellOf(old)}`;
    },
  },
  {
    name: 'moved',
    expected: `same id, ${ENGINEER}`,
    async run(server) {
      const before = await personOf(server, PEOPLE.moved.login);
      await changing(server, (client) =>
        client.modifyDN(dnOf(server, PEOPLE.moved), `${rdnOf(server, PEOPLE.moved)},${server.archive}`),
      );
      return compared(before, await asked(server, PEOPLE.moved.login, PASSWORD));
    },
  },
  {
    name: 'looked up by id',
    expected: `found, ${ENGINEER}`,
    async run(server) {
      const directories = openDirectories([settingsFor(server)]);
      const person = await personOf(server, PEOPLE.alice.login);
      const answer = await directories.lookup(server.kind, person.stableId);
      return answer.kind === 'found'
        ? `found, ${cellOf({ kind: 'proved', person: answer.person })}`
        : `gone: ${answer.reason}`;
    },
  },
];

function every(cell: Cell): Readonly<Record<DirectoryKind, Cell>> {
  return { 'active-directory': cell, openldap: cell, freeipa: cell, '389ds': cell };
}

export async function personOf(server: DirectoryServer, username: string): Promise<DirectoryPerson> {
  const answer = await asked(server, username, PASSWORD);
  if (answer.kind !== 'proved') throw new Error(`${username} cannot log in: ${cellOf(answer)}`);
  return answer.person;
}

function compared(before: DirectoryPerson, after: DirectoryAnswer): Cell {
  const id = after.kind === 'proved' && after.person.stableId === before.stableId ? 'same id' : 'another id';
  return `${id}, ${cellOf(after)}`;
}

function dnOf(server: DirectoryServer, one: Person): string {
  return server.kind === 'active-directory' ? adDn(one) : uidDn(server, one);
}

function rdnOf(server: DirectoryServer, one: Person): string {
  return server.kind === 'active-directory' ? `CN=${one.cn}` : `uid=${one.login}`;
}

async function rename(
  server: DirectoryServer,
  one: Person,
  to: { readonly login: string; readonly cn: string },
): Promise<void> {
  await changing(server, async (client) => {
    const isAd = server.kind === 'active-directory';
    await client.modifyDN(dnOf(server, one), rdnOf(server, { ...one, ...to }));
    const names = isAd ? { sAMAccountName: to.login, userPrincipalName: `${to.login}@corp.example` } : { cn: to.cn };
    const changes = Object.entries(names).map(
      ([type, value]) => new Change({ operation: 'replace', modification: new Attribute({ type, values: [value] }) }),
    );
    await client.modify(dnOf(server, { ...one, ...to }), changes);
  });
}

async function changing(server: DirectoryServer, change: (client: Client) => Promise<void>): Promise<void> {
  const client = new Client({ url: server.secureUrl, tlsOptions: await tlsFor(server), timeout: 10_000 });
  try {
    await client.bind(server.manager.dn, server.manager.password);
    await change(client);
  } finally {
    await client.unbind();
  }
}
