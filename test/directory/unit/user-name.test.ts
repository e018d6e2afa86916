import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  directoriesFor,
  domainsOfPattern,
  fillPattern,
  isName,
  splitDomain,
  typedName,
} from '../../../src/directory/user-name.ts';

describe('what is bound as', () => {
  it.each([
    ['uid={0},ou=people,dc=x', 'alice', 'uid=alice,ou=people,dc=x'],
    ['uid={0},ou=people,dc=x', 'a,cn=admins', String.raw`uid=a\,cn\=admins,ou=people,dc=x`],
    ['uid={0},ou=people,dc=x', '$&', 'uid=$&,ou=people,dc=x'],
    ['{0}@corp.example', 'alice', 'alice@corp.example'],
    ['CORP\\{0}', 'Åsa Öberg', 'CORP\\Åsa Öberg'],
  ])('%s with %j', (pattern, name, bound) => {
    expect(fillPattern(pattern, name)).toBe(bound);
  });

  it.each(['a@b', 'a\\b', 'a\0b', 'a\nb', '\u0085a', ' a', 'a '])('is nothing for %j outside a DN', (name) => {
    expect(fillPattern('{0}@corp.example', name)).toBeUndefined();
    expect(fillPattern('CORP\\{0}', name)).toBeUndefined();
  });
});

it.each([
  ['CORP\\alice', { domain: 'corp', name: 'alice' }],
  ['alice@Corp.Example', { domain: 'corp.example', name: 'alice' }],
  ['a@b@c', { domain: 'c', name: 'a@b' }],
  ['alice', undefined],
  ['@corp', undefined],
  ['alice@', undefined],
  ['\\alice', undefined],
])('the domain of %j', (typed, split) => {
  expect(splitDomain(typed)).toEqual(split);
});

it('a domain is taken off only where it is the directory’s', () => {
  expect(typedName('CORP\\alice', ['corp'])).toEqual({ typed: 'CORP\\alice', name: 'alice' });
  expect(typedName('OTHER\\alice', ['corp'])).toEqual({ typed: 'OTHER\\alice', name: 'OTHER\\alice' });
});

describe('with several directories, a name goes', () => {
  const [corp, lab, rest] = [
    { domains: ['corp', 'corp.example'], namesWithoutDomain: false },
    { domains: ['lab'], namesWithoutDomain: true },
    { domains: [], namesWithoutDomain: true },
  ];
  const all = [corp, lab, rest];

  it('only to the directory of its domain', () => {
    expect(directoriesFor('LAB\\x', all)).toEqual([lab]);
    expect(directoriesFor('x@corp.example', all)).toEqual([corp]);
  });

  it.each(['x', 'x@elsewhere', 'OTHER\\x', '@corp', 'corp\\'])(
    'without a configured domain only to those that take it: %j',
    (typed) => {
      expect(directoriesFor(typed, all)).toEqual([lab, rest]);
      expect(directoriesFor(typed, [corp, { ...lab, namesWithoutDomain: false }])).toEqual([]);
    },
  );

  it('to the only directory in any case', () => {
    expect(directoriesFor('x', [corp])).toEqual([corp]);
    expect(directoriesFor('x@elsewhere', [corp])).toEqual([corp]);
  });
});

it('the directories for a name depend on its domain only, for any domains', () => {
  const domain = fc.constantFrom('a', 'b', 'c', 'd.example', 'e');
  const directory = fc.record({ domains: fc.uniqueArray(domain, { maxLength: 2 }), namesWithoutDomain: fc.boolean() });
  const typed = fc.oneof(
    fc.constant('alice'),
    fc.tuple(domain, fc.boolean()).map(([name, isUpper]) => `${isUpper ? name.toUpperCase() : name}\\alice`),
    domain.map((name) => `alice@${name}`),
  );
  fc.assert(
    fc.property(fc.array(directory, { minLength: 1, maxLength: 4 }), typed, (all, name) => {
      const [, before, after] = /^(?:(.*)\\)?alice(?:@(.*))?$/.exec(name) ?? [];
      const named = all.filter(({ domains }) => domains.some((one) => one === (before ?? after)?.toLowerCase()));
      const open = all.length === 1 ? all : all.filter(({ namesWithoutDomain }) => namesWithoutDomain);
      expect(directoriesFor(name, all)).toEqual(named.length > 0 ? named : open);
    }),
  );
});

it.each([
  ['{0}@corp.example', [], ['corp.example']],
  ['{0}@corp.example', ['corp', 'corp.example'], ['corp', 'corp.example']],
  ['CORP\\{0}', ['corp.example'], ['corp.example', 'corp']],
])('the domains of the pattern %s beside %j', (pattern, domains, expected) => {
  expect(domainsOfPattern(pattern, domains)).toEqual(expected);
});

it.each(['', 'x'.repeat(257), '\ud800'])('what cannot be a name is none: %j', (text) => {
  expect(isName(text)).toBe(false);
});
