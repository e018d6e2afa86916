import { describe, expect, it } from 'vitest';
import { directoriesFor, fillPattern, isName, splitDomain, typedName } from '../../../src/directory/user-name.ts';

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

it('a name goes to the directory of its domain alone, and to all in order otherwise', () => {
  const [corp, lab, rest] = [{ domains: ['corp', 'corp.example'] }, { domains: ['lab'] }, { domains: [] }];
  const all = [corp, lab, rest];
  expect(directoriesFor('LAB\\x', all)).toEqual([lab]);
  expect(directoriesFor('x@corp.example', all)).toEqual([corp]);
  expect(directoriesFor('x@elsewhere', all)).toEqual(all);
  expect(directoriesFor('x', all)).toEqual(all);
});

it.each(['', 'x'.repeat(257), '\ud800'])('what cannot be a name is none: %j', (text) => {
  expect(isName(text)).toBe(false);
});
