/** Groups, with answers that no server of these tests gives: ranges of values, and trees without end. */

import { AndFilter, ExtensibleFilter, OrFilter } from 'ldapts';
import { describe, expect, it } from 'vitest';
import type { LdapConnection, SearchRequest } from '../../../src/directory/connection.ts';
import type { LdapEntry } from '../../../src/directory/entry.ts';
import { DirectoryFault } from '../../../src/directory/faults.ts';
import { groupsOf } from '../../../src/directory/groups.ts';
import type { DirectorySettings } from '../../../src/directory/settings.ts';
import { TYPES } from '../../../src/directory/types.ts';
import { Fault } from '../../../src/domain/errors.ts';
import { entryOf } from './entries.ts';
import { settingsWith, urlOf } from './fake-settings.ts';

/** A connection that answers searches by a function, and records them. */
function answering(answer: (request: SearchRequest) => readonly LdapEntry[]) {
  const asked: SearchRequest[] = [];
  const search = async (request: SearchRequest): Promise<readonly LdapEntry[]> => {
    asked.push(request);
    return answer(request);
  };
  const never = (): never => {
    throw new Error('not asked here');
  };
  const c: LdapConnection = {
    url: urlOf('ldap://localhost:1'),
    search,
    searchAll: search,
    count: never,
    bind: never,
    whoAmI: never,
    close: never,
  };
  return { c, asked };
}

const walk = (c: LdapConnection, changes: Partial<DirectorySettings> = {}, type: keyof typeof TYPES = 'openldap') => ({
  c,
  now: Date.now,
  settings: settingsWith({ memberOf: 'trusted', ...changes }),
  traits: TYPES[type],
  account: 'alice',
});
const group = (number: number): string => `cn=g${number},dc=x`;

describe('an attribute that comes in pieces', () => {
  const first = entryOf({ 'memberOf;range=0-1': [group(0), group(1)] });

  it('is read to its end', async () => {
    const { c, asked } = answering(({ attributes }) =>
      attributes[0] === 'memberOf;range=2-*'
        ? [entryOf({ 'memberOf;range=2-3': [group(2), group(3)] })]
        : [entryOf({ 'memberOf;range=4-*': [group(4)] })],
    );
    const groups = await groupsOf(walk(c, { nestedGroups: false }), first);
    expect(groups).toEqual([0, 1, 2, 3, 4].map(group));
    expect(asked.map(({ attributes }) => attributes[0])).toEqual(['memberOf;range=2-*', 'memberOf;range=4-*']);
  });

  it('is a fault when its rest is not there, and when it does not end: part of the groups is none of them', async () => {
    const gone = answering(() => []);
    await expect(groupsOf(walk(gone.c, { nestedGroups: false }), first)).rejects.toThrow(Fault);
    const endless = answering(({ attributes }) => {
      const from = Number(/=(\d+)/.exec(attributes[0] ?? '')?.[1]);
      return [
        entryOf({ [`memberOf;range=${from}-${from + 99}`]: Array.from({ length: 100 }, (_, i) => group(from + i)) }),
      ];
    });
    await expect(groupsOf(walk(endless.c, { nestedGroups: false }), first)).rejects.toThrow(/do not end/);
  });
});

describe('groups in groups', () => {
  it('are followed through the configured search, many at a time, and a circle ends where it began', async () => {
    const above = new Map([
      ['uid=alice,dc=x', [group(1), group(2)]],
      [group(1), [group(3)]],
      [group(2), [group(3), group(1)]],
      [group(3), [group(1), group(3)]],
    ]);
    const { c, asked } = answering(({ filter }) =>
      [...above].flatMap(([dn, dns]) =>
        String(filter).includes(`(member=${dn})`) ? dns.map((one) => entryOf({}, one)) : [],
      ),
    );
    const groups = await groupsOf(walk(c, { groupSearchFilter: '(member={0})' }), entryOf({}));
    expect(groups).toEqual([1, 2, 3].map(group));
    expect(asked.map(({ filter }) => filter)).toEqual([
      '(member=uid=alice,dc=x)',
      `(|(member=${group(1)})(member=${group(2)}))`,
      `(member=${group(3)})`,
    ]);
  });

  it('are searched together with those that the entry names, which is all where nothing is nested', async () => {
    const { c, asked } = answering(() => [entryOf({}, group(1)), entryOf({}, group(2))]);
    const groups = await groupsOf(
      walk(c, { groupSearchFilter: '(member={0})' }),
      entryOf({ memberOf: [group(1), group(2)] }),
    );
    expect(groups).toEqual([1, 2].map(group));
    expect(asked.map(({ filter }) => filter)).toEqual([
      `(|(member=uid=alice,dc=x)(member=${group(1)})(member=${group(2)}))`,
    ]);
  });

  it('that are too many for one answer are searched in parts, and when one part is still too large it is a fault', async () => {
    const named = entryOf({ memberOf: [1, 2, 3].map(group) });
    const settings = { groupSearchFilter: '(member={0})' };
    const members = ({ filter }: SearchRequest): number => String(filter).split('member=').length - 1;
    const limited = answering((request) => {
      if (members(request) > 1) throw new DirectoryFault('too many', 4);
      return String(request.filter).includes(group(3)) ? [entryOf({}, group(4))] : [];
    });
    expect(await groupsOf(walk(limited.c, settings), named)).toEqual([1, 2, 3, 4].map(group));
    for (const code of [4, 11]) {
      const { c } = answering(() => {
        throw new DirectoryFault('too many', code);
      });
      await expect(groupsOf(walk(c, settings), named)).rejects.toThrow('too many');
    }
    const refusing = answering(() => {
      throw new DirectoryFault('busy', 51);
    });
    await expect(groupsOf(walk(refusing.c, settings), named)).rejects.toThrow('busy');
    expect(refusing.asked).toHaveLength(1);
  });

  it('are followed 32 deep by the search, and no deeper', async () => {
    const chain = (length: number) =>
      answering(({ filter }) => {
        const above = Number(/cn=g(\d+)/.exec(String(filter))?.[1] ?? 0) + 1;
        return above > length ? [] : [entryOf({}, group(above))];
      });
    expect(await groupsOf(walk(chain(32).c, { groupSearchFilter: '(member={0})' }), entryOf({}))).toHaveLength(32);
    await expect(groupsOf(walk(chain(33).c, { groupSearchFilter: '(member={0})' }), entryOf({}))).rejects.toThrow(
      /32 deep/,
    );
  });

  it('are followed through memberOf if no search is configured, and each entry is read once', async () => {
    const { c, asked } = answering(({ base }) => [
      entryOf({ memberOf: base === group(1) ? [group(2)] : [group(1)] }, base),
    ]);
    expect(await groupsOf(walk(c), entryOf({ memberOf: group(1) }))).toEqual([1, 2].map(group));
    expect(asked.map(({ base }) => base)).toEqual([group(1), group(2)]);
  });

  it('are not searched if memberOf has them already, or if nested groups are off', async () => {
    const { c, asked } = answering(() => []);
    await groupsOf(walk(c, {}, '389ds'), entryOf({ memberOf: group(1) }));
    await groupsOf(walk(c, { nestedGroups: false }), entryOf({ memberOf: group(1) }));
    expect(asked).toEqual([]);
  });

  it('without end are a fault, deep or many', async () => {
    const deeper = answering(({ base }) => [entryOf({ memberOf: group(Number(/\d+/.exec(base)?.[0]) + 1) }, base)]);
    await expect(groupsOf(walk(deeper.c), entryOf({ memberOf: group(1) }))).rejects.toThrow(/deep/);
    const { c } = answering(() => []);
    const many = entryOf({ memberOf: Array.from({ length: 10_001 }, (_, i) => group(i)) });
    await expect(groupsOf(walk(c, { nestedGroups: false }), many)).rejects.toThrow(/more than 10000/);
  });
});

describe('memberOf of an entry that is not trusted', () => {
  const claiming = entryOf({ memberOf: [group(7), group(8)] });
  const searched = { memberOf: 'searched' } as const;

  it('gives no group: only the groups that list the person count, and those that list these', async () => {
    const { c, asked } = answering(({ filter }) =>
      String(filter).includes('member=uid=alice,dc=x') ? [entryOf({}, group(1))] : [],
    );
    for (const type of ['openldap', 'freeipa', '389ds'] as const)
      expect(await groupsOf(walk(c, searched, type), claiming)).toEqual([group(1)]);
    expect(asked[0]).toMatchObject({
      base: 'dc=x',
      filter: '(|(member=uid=alice,dc=x)(uniqueMember=uid=alice,dc=x)(memberUid=alice))',
    });
  });

  it('is what OpenLDAP has by default, and the others have not', async () => {
    const { c } = answering(() => []);
    expect(await groupsOf(walk(c, { memberOf: 'auto' }), claiming)).toEqual([]);
    expect(await groupsOf(walk(c, { memberOf: 'auto' }, '389ds'), claiming)).toEqual([group(7), group(8)]);
  });

  it('is not followed at groups either, where the configured search is by name only', async () => {
    const { c } = answering(({ filter, attributes }) => {
      expect(attributes).toEqual(['1.1']);
      if (filter === '(memberUid=alice)') return [entryOf({ memberOf: [group(9)] }, group(1))];
      return String(filter).includes(`(member=${group(1)})`) ? [entryOf({}, group(2))] : [];
    });
    const settings = { ...searched, groupSearchFilter: '(memberUid={1})' };
    expect(await groupsOf(walk(c, settings), claiming)).toEqual([group(1), group(2)]);
  });
});

it('a person whose entry shows no name is listed by no group that lists names', async () => {
  const { c, asked } = answering(() => []);
  const nameless = { ...walk(c, { groupSearchFilter: '(memberUid={1})' }), account: undefined };
  for (let i = 0; i < 2; i++) await groupsOf(nameless, entryOf({}));
  const names = asked.map(({ filter }) => /^\(memberUid=([0-9a-f-]{36})\)$/.exec(String(filter))?.[1]);
  expect(new Set(names).size).toBe(2);
  expect(names).not.toContain(undefined);
});

it("the search for groups at Active Directory covers the groups above the user and above the primary group, by the directory's own matching rule", async () => {
  const primary = 'CN=Domain Users,CN=Users,DC=x';
  const { c, asked } = answering(({ filter }) =>
    filter instanceof AndFilter ? [entryOf({}, 'CN=All,DC=x')] : [entryOf({}, primary)],
  );
  const objectSid = Buffer.from('010500000000000515000000a065cf7e784b9b5fe77c87704f040000', 'hex');
  const person = entryOf({ objectSid, primaryGroupID: '513', memberOf: 'CN=A\\, B,DC=x' });
  expect(await groupsOf(walk(c, {}, 'active-directory'), person)).toEqual([
    'cn=a\\, b,dc=x',
    'cn=all,dc=x',
    'cn=domain users,cn=users,dc=x',
  ]);
  const [, chain] = asked;
  const either =
    chain?.filter instanceof AndFilter ? chain.filter.filters.find((one) => one instanceof OrFilter) : undefined;
  const filters = either?.filters ?? [];
  expect(filters.map((one) => (one instanceof ExtensibleFilter ? [one.rule, one.matchType, one.value] : []))).toEqual([
    ['1.2.840.113556.1.4.1941', 'member', 'uid=alice,dc=x'],
    ['1.2.840.113556.1.4.1941', 'member', primary],
  ]);
});
