/** The members of a setup file: views, values after a setup, and differences. Property tests compare with the rules in plain words. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { difference, type SetupMembers, valuesAfter, viewOf, withoutNulls } from '../../src/iam/setup/members.ts';

interface Values {
  readonly title: string;
  readonly note: string;
  readonly enabled: boolean;
  readonly tags: readonly string[];
  readonly limits: Readonly<Record<string, number>>;
}

const MEMBERS: SetupMembers<Values> = {
  title: {},
  note: { empty: '' },
  enabled: { initial: true },
  tags: { empty: [], view: (tags) => tags.toSorted() },
  limits: { empty: {} },
};

const values: fc.Arbitrary<Values> = fc.record({
  title: fc.string(),
  note: fc.constantFrom('', 'a', 'b'),
  enabled: fc.boolean(),
  tags: fc.subarray(['x', 'y', 'z']),
  limits: fc.dictionary(fc.constantFrom('users', 'tokens'), fc.nat(3)),
});
const wanted: fc.Arbitrary<Partial<Values>> = fc
  .tuple(values, fc.subarray(['title', 'note', 'enabled', 'tags', 'limits'] as const))
  .map(([all, names]) => Object.fromEntries(names.map((name) => [name, all[name]])));

function valuesOf(after: ReturnType<typeof valuesAfter<Values>>): Values {
  if ('missing' in after) throw new Error(`missing: ${after.missing}`);
  return after.values;
}

describe('the view of a resource', () => {
  test('leaves out empty members and keeps the order of the definition', () => {
    const view = viewOf(MEMBERS, { limits: {}, tags: ['y', 'x'], enabled: false, note: '', title: '' });
    expect(Object.entries(view)).toEqual([
      ['title', ''],
      ['enabled', false],
      ['tags', ['x', 'y']],
    ]);
  });

  test('has no difference to the view of the same values after an empty setup', () => {
    fc.assert(
      fc.property(values, (stored) => {
        const after = valuesOf(valuesAfter(MEMBERS, {}, stored));
        expect(difference(viewOf(MEMBERS, stored), viewOf(MEMBERS, after))).toEqual([]);
      }),
    );
  });

  test('is the view of a new resource that the view creates', () => {
    fc.assert(
      fc.property(values, (stored) => {
        const view = viewOf(MEMBERS, stored);
        expect(viewOf(MEMBERS, valuesOf(valuesAfter(MEMBERS, view, undefined)))).toEqual(view);
      }),
    );
  });
});

describe('the values after a setup', () => {
  test('are the wanted ones, then the stored ones', () => {
    fc.assert(
      fc.property(wanted, values, (some, stored) => {
        expect(valuesOf(valuesAfter(MEMBERS, some, stored))).toEqual({ ...stored, ...some });
      }),
    );
  });

  test('of a new resource are the wanted ones, then the defaults', () => {
    fc.assert(
      fc.property(wanted, (some) => {
        const defaults = { note: '', enabled: true, tags: [], limits: {} };
        expect(valuesOf(valuesAfter(MEMBERS, { title: 'new', ...some }, undefined))).toEqual({
          title: 'new',
          ...defaults,
          ...some,
        });
      }),
    );
  });

  test('of a new resource name the required members that are absent', () => {
    expect(valuesAfter(MEMBERS, { note: 'a' }, undefined)).toEqual({ missing: ['title'] });
  });

  test('keep the empty value that a null in the file means', () => {
    const document = withoutNulls(MEMBERS, { note: null, tags: null, limits: null });
    const stored = { title: 't', note: 'n', enabled: false, tags: ['x'], limits: { users: 1 } };
    expect(valuesOf(valuesAfter(MEMBERS, document, stored))).toEqual({ ...stored, note: '', tags: [], limits: {} });
  });
});

test('a difference lists each changed member of an object by itself', () => {
  const before = { title: 'a', limits: { users: 1, tokens: 2 } };
  expect(difference(before, { title: 'a', limits: { users: 3 }, tags: ['x'] })).toEqual([
    { member: 'limits.users', before: 1, after: 3 },
    { member: 'limits.tokens', before: 2, after: undefined },
    { member: 'tags', before: undefined, after: ['x'] },
  ]);
});
