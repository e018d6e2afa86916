import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ClaimRule, IssuerUsers } from '../../src/domain/records.ts';
import { claimValue, linkedClaim, mappedRoles, matchesRules, subjectOf } from '../../src/identity/claims.ts';
import { roleName } from '../credential-cache/support/ids.ts';
import { runs } from '../support/properties.ts';

const CLAIMS = JSON.parse(`{
  "sub": "pod", "groups": ["dev", 7, ["ops"], "a*b"], "n": 7, "": "empty", "a/b": "slash", "m~n": "tilde", "~1": "both",
  "kubernetes.io": {"namespace": "prod", "pod": {"name": "web"}}, "__proto__": {"admin": "yes"}, "constructor": "own"
}`);

describe('the value of a claim', () => {
  it.each([
    ['sub', 'pod'],
    ['/sub', 'pod'],
    ['/kubernetes.io/namespace', 'prod'],
    ['/kubernetes.io/pod/name', 'web'],
    ['kubernetes.io/namespace', undefined],
    ['/groups/0', 'dev'],
    ['/groups/2/0', 'ops'],
    ['/groups/00', undefined],
    ['/groups/-', undefined],
    ['/groups/9', undefined],
    ['/groups/length', undefined],
    ['/a~1b', 'slash'],
    ['a/b', 'slash'],
    ['/m~0n', 'tilde'],
    ['/~01', 'both'],
    ['/', 'empty'],
    ['/sub/length', undefined],
    ['toString', undefined],
    ['/kubernetes.io/constructor', undefined],
    ['constructor', 'own'],
    ['/__proto__/admin', 'yes'],
    ['__proto__', { admin: 'yes' }],
    ['/hasOwnProperty', undefined],
  ])('%s is %j', (claim, expected) => {
    expect(claimValue(CLAIMS, claim)).toEqual(expected);
  });

  it('is no member of Object.prototype', () => {
    for (const name of Object.getOwnPropertyNames(Object.prototype)) expect(claimValue({}, name)).toBeUndefined();
  });
});

describe('a rule', () => {
  const matches = (claim: string, ...values: string[]) => matchesRules(CLAIMS, [{ claim, in: values }]);

  it('matches a text or one element of a list, by a text or a glob', () => {
    expect(matches('sub', 'x', 'pod')).toBe(true);
    expect(matches('sub', 'p*')).toBe(true);
    expect(matches('groups', 'dev')).toBe(true);
    expect(matches('groups', 'a*b')).toBe(true);
    expect(matches('/kubernetes.io/namespace', 'pr*d')).toBe(true);
  });

  it('never matches a value of another JSON type, nor an element of an inner list', () => {
    expect(matches('n', '7', '*')).toBe(false);
    expect(matches('groups', '7')).toBe(false);
    expect(matches('groups', 'ops')).toBe(false);
    expect(matches('kubernetes.io', '*')).toBe(false);
    expect(matches('absent', '*')).toBe(false);
  });

  it('is one of several that must all match', () => {
    const rule = { claim: 'sub', in: ['pod'] };
    expect(matchesRules(CLAIMS, [])).toBe(true);
    expect(matchesRules(CLAIMS, [rule, { claim: 'n', in: ['*'] }])).toBe(false);
  });

  it('matches nothing any longer after the work of one decision, so rules of any size end', () => {
    const values = Array.from({ length: 100 }, (_, i) => `*a*b*c*d*e*f*${i}x`);
    const claims = { list: Array.from({ length: 3000 }, () => 'abcdefabcdef'), sub: 'pod' };
    const hard = Array.from({ length: 100 }, () => ({ claim: 'list', in: values, roles: [roleName('hard')] }));
    const easy = { claim: 'sub', in: ['pod'], roles: [roleName('easy')] };
    const rolesBy = (roles: IssuerUsers['roles']) =>
      mappedRoles({ subject_claim: 'sub', create: false, roles, default_roles: [] }, claims);
    expect(rolesBy([easy, ...hard])).toEqual(['easy']);
    expect(rolesBy([...hard, easy])).toEqual([]);
  });
});

/** A glob in the obvious way. */
function naiveGlob(glob: string, name: string): boolean {
  if (glob === '') return name === '';
  const [first, rest] = [glob.slice(0, 1), glob.slice(1)];
  if (first === '*') return naiveGlob(rest, name) || (name !== '' && naiveGlob(glob, name.slice(1)));
  return name.startsWith(first) && naiveGlob(rest, name.slice(1));
}

/** The value of a claim by the text of RFC 6901, without a look at the prototype. */
function naiveValue(claims: unknown, claim: string): unknown {
  const parts = claim.startsWith('/') ? claim.split('/').slice(1) : undefined;
  const names = parts?.map((part) => part.replace(/~[01]/g, (code) => (code === '~1' ? '/' : '~'))) ?? [claim];
  return names.reduce<unknown>((value, name) => {
    const members = typeof value === 'object' && value !== null ? Object.entries(value) : [];
    return members.find(([key]) => key === name)?.[1];
  }, claims);
}

const name = fc.constantFrom('a', 'b', 'a/b', '~', '0', '1', '');
const leaf = fc.oneof(fc.constantFrom('a', 'b', 'ab', 'aab', ''), fc.constantFrom(0, true, null));
const { value: json } = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    leaf,
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(name, tie('value'), { maxKeys: 3 }),
  ),
}));
const pointer = fc
  .array(name, { minLength: 1, maxLength: 3 })
  .map((names) => names.map((part) => `/${part.replaceAll('~', '~0').replaceAll('/', '~1')}`).join(''));
const claim = fc.oneof(name, pointer);
const glob = fc.array(fc.constantFrom('a', 'b', '*'), { minLength: 1, maxLength: 5 }).map((parts) => parts.join(''));
const rule = fc.record({ claim, in: fc.array(glob, { minLength: 1, maxLength: 3 }) });

describe('for any claims and rules', () => {
  it('a value, and a match, are those of a naive reader', () => {
    fc.assert(
      fc.property(fc.dictionary(name, json, { maxKeys: 4 }), fc.array(rule, { maxLength: 3 }), (claims, rules) => {
        for (const { claim: asked } of rules) expect(claimValue(claims, asked)).toEqual(naiveValue(claims, asked));
        const expected = rules.every(({ claim: asked, in: values }) =>
          [naiveValue(claims, asked)]
            .flat(1)
            .some((item) => typeof item === 'string' && values.some((text) => naiveGlob(text, item))),
        );
        expect(matchesRules(claims, rules)).toBe(expected);
      }),
      { numRuns: runs(2000) },
    );
  });

  it('the mapped roles are those of the rules that match, with the default roles, sorted and each once', () => {
    const roles = fc.array(fc.constantFrom('x', 'y', 'z').map(roleName), { maxLength: 2 });
    const mapping = fc.array(fc.record({ claim, in: fc.array(glob, { minLength: 1, maxLength: 2 }), roles }), {
      maxLength: 4,
    });
    fc.assert(
      fc.property(fc.dictionary(name, json, { maxKeys: 4 }), mapping, roles, (claims, rules, defaults) => {
        const users: IssuerUsers = { subject_claim: 'sub', create: false, roles: rules, default_roles: defaults };
        const given = rules.filter((one) => matchesRules(claims, [one])).flatMap((one) => one.roles);
        expect(mappedRoles(users, claims)).toEqual(
          [...new Set([...given, ...defaults])].toSorted((a, b) => (a < b ? -1 : 1)),
        );
      }),
      { numRuns: runs(1000) },
    );
  });
});

describe('a subject', () => {
  it.each([
    ['sub', 'pod'],
    ['/kubernetes.io/namespace', 'prod'],
    ['n', undefined],
    ['groups', undefined],
    ['absent', undefined],
  ])('of the claim %s is %j', (from, expected) => {
    expect(subjectOf(CLAIMS, from)).toBe(expected);
  });

  it.each(['', '\0', 'a\0', '\ud800', 'x'.repeat(513), '\u{1f511}'.repeat(513)])(
    'is no text that the store does not keep as it is: %j',
    (sub) => {
      expect(subjectOf({ sub }, 'sub')).toBeUndefined();
    },
  );

  it.each(['x', '\u{1f511}'])('may have 512 characters, as the API counts them: %s', (character) => {
    const sub = character.repeat(512);
    expect(subjectOf({ sub }, 'sub')).toBe(sub);
  });
});

describe('a list that the token replaces by a link', () => {
  const claims = { _claim_names: { groups: 'src1' }, _claim_sources: { src1: { endpoint: 'https://graph.example' } } };
  const users = (asked: string): ClaimRule[] => [{ claim: asked, in: ['dev'] }];

  it('is named for a rule on it, by name and by pointer', () => {
    expect(linkedClaim(claims, users('groups'))).toBe('groups');
    expect(linkedClaim(claims, users('/groups/0'))).toBe('groups');
  });

  it('does not concern a rule on another claim, nor a token without links', () => {
    expect(linkedClaim(claims, users('roles'))).toBeUndefined();
    expect(linkedClaim({ groups: [] }, users('groups'))).toBeUndefined();
    expect(linkedClaim({ _claim_names: 'groups' }, users('groups'))).toBeUndefined();
  });
});
