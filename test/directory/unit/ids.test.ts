import fc from 'fast-check';
import { EqualityFilter } from 'ldapts';
import { describe, expect, it } from 'vitest';
import { siblingSid } from '../../../src/directory/groups.ts';
import { attributeOfId, idFilter, readId } from '../../../src/directory/ids.ts';
import { identify } from '../../../src/directory/person.ts';
import { TYPES, typeOfRoot } from '../../../src/directory/types.ts';
import { entryOf } from './entries.ts';
import { settingsWith } from './fake-settings.ts';

const UUID = '7bcf4613-b4be-49bc-9311-22def1a85965';

const NS_ID = 'fc0e1104-e5ce11f1-bff59b6b-340761da';
const GUID = Buffer.from('724840f8aa76694991a8621e8e3a902f', 'hex');
/** A value of each identity attribute, and the id that it makes. */
const VALUES = {
  objectGUID: [GUID, 'objectguid:f8404872-76aa-4969-91a8-621e8e3a902f'],
  ipaUniqueID: [UUID.toUpperCase(), `ipauniqueid:${UUID}`],
  nsUniqueId: [NS_ID, `nsuniqueid:${NS_ID}`],
  entryUUID: [UUID, `entryuuid:${UUID}`],
} as const;
const ATTRIBUTES = ['objectGUID', 'ipaUniqueID', 'nsUniqueId', 'entryUUID'] as const;

describe('the stable id', () => {
  it.each([
    ['active-directory', 'objectGUID'],
    ['openldap', 'entryUUID'],
    ['freeipa', 'ipaUniqueID'],
    ['389ds', 'nsUniqueId'],
  ] as const)('is that of one attribute at %s: %s', (type, attribute) => {
    expect(TYPES[type].id).toBe(attribute);
  });

  it.each(ATTRIBUTES)('is read from %s for any values of the other attributes, in any spelling', (attribute) => {
    const [, stableId] = VALUES[attribute];
    const all = Object.fromEntries(ATTRIBUTES.map((name) => [name, VALUES[name][0]]));
    expect(readId(entryOf(all), attribute)).toEqual({ kind: 'one', stableId });
    const lower = Object.fromEntries(ATTRIBUTES.map((name) => [name.toLowerCase(), VALUES[name][0]]));
    expect(readId(entryOf(lower), attribute)).toEqual({ kind: 'one', stableId });
    const others = Object.fromEntries(
      ATTRIBUTES.filter((name) => name !== attribute).map((name) => [name, VALUES[name][0]]),
    );
    expect(readId(entryOf(others), attribute)).toEqual({ kind: 'none' });
  });

  it('is none for a value of another form', () => {
    expect(readId(entryOf({ ipaUniqueID: 'autogenerate' }), 'ipaUniqueID')).toEqual({ kind: 'none' });
    expect(readId(entryOf({ objectGUID: GUID.subarray(1) }), 'objectGUID')).toEqual({ kind: 'none' });
    expect(readId(entryOf({ uid: 'alice' }), 'entryUUID')).toEqual({ kind: 'none' });
  });

  it('is refused with several values, under any option and in any form', () => {
    for (const attributes of [
      { entryUUID: [UUID, UUID.replace('7', '8')] },
      { entryUUID: UUID, 'entryUUID;x-other': UUID },
      { entryUUID: [UUID, 'anything'] },
    ]) {
      expect(readId(entryOf(attributes), 'entryUUID')).toEqual({ kind: 'several' });
    }
  });

  it('finds the very entry that it was read from', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 16, maxLength: 16 }), (bytes) => {
        const read = readId(entryOf({ objectGUID: Buffer.from(bytes) }), 'objectGUID');
        const filter = read.kind === 'one' ? idFilter(read.stableId) : undefined;
        expect(filter).toBeInstanceOf(EqualityFilter);
        expect(filter).toMatchObject({ attribute: 'objectGUID', value: Buffer.from(bytes) });
      }),
    );
  });

  it.each(ATTRIBUTES)('names %s as its attribute', (attribute) => {
    expect(attributeOfId(VALUES[attribute][1])).toBe(attribute);
  });

  it.each(['', 'uid:alice', UUID, `entryuuid:${UUID})(uid=*`, 'entryuuid:', 'objectguid:*', `nsuniqueid:${UUID}`])(
    '%j is none',
    (text) => {
      expect(idFilter(text)).toBeUndefined();
      expect(attributeOfId(text)).toBeUndefined();
    },
  );
});

describe('the user that an entry identifies', () => {
  const identified = (attributes: Parameters<typeof entryOf>[0], username?: string) =>
    identify(entryOf(attributes), {
      settings: settingsWith({ attributes: username === undefined ? {} : { username } }),
      traits: TYPES.openldap,
    });

  it('is the one value of the name, by the configured attribute', () => {
    expect(identified({ entryUUID: UUID, uid: 'alice', cn: ['Alice', 'A'] })).toMatchObject({
      kind: 'one',
      account: 'alice',
    });
    expect(identified({ entryUUID: UUID, uid: ['a', 'b'], cn: 'Alice' }, 'cn')).toMatchObject({
      kind: 'one',
      account: 'Alice',
    });
    expect(identified({ entryUUID: UUID, cn: 'Alice' })).toMatchObject({ kind: 'one', account: undefined });
  });

  it('is rejected if the entry has several names, in any order, form or language', () => {
    for (const attributes of [
      { uid: ['bob', 'carol'] },
      { uid: ['carol', 'bob'] },
      { uid: 'carol', 'uid;lang-en': 'bob' },
      { 'uid;lang-de': 'carol', 'uid;lang-en': 'bob' },
      { uid: ['carol', ' '] },
    ]) {
      expect(identified({ entryUUID: UUID, ...attributes })).toEqual({
        kind: 'refused',
        reason: 'several_names',
        detail: 'uid=alice,dc=x has 2 values of uid',
      });
    }
  });
});

it('an entry identifies a user exactly if it has one identity and at most one username, with any other attributes', () => {
  const option = fc.constantFrom('', ';lang-en', ';x-a');
  const valued = (name: string, value: fc.Arbitrary<string>) =>
    fc
      .uniqueArray(fc.tuple(option, fc.array(value, { minLength: 1, maxLength: 2 })), {
        maxLength: 2,
        selector: ([key]) => key,
      })
      .map((list) => list.map(([key, values]) => [`${name}${key}`, values] as const));
  const entries = fc.tuple(
    valued('entryUUID', fc.constantFrom(UUID, UUID.replace('7', '8'))),
    valued('uid', fc.constantFrom('bob', 'carol')),
    valued('nsUniqueId', fc.constant(NS_ID)),
  );
  fc.assert(
    fc.property(entries, ([ids, names, others]) => {
      const found = identify(entryOf(Object.fromEntries([...ids, ...names, ...others])), {
        settings: settingsWith({}),
        traits: TYPES.openldap,
      });
      const count = (list: readonly (readonly [string, readonly string[]])[]): number =>
        list.flatMap(([, values]) => values).length;
      const plain = ids.find(([name]) => name === 'entryUUID')?.[1][0];
      const isOne = count(ids) === 1 && plain !== undefined && count(names) <= 1;
      expect(found.kind === 'one').toBe(isOne);
      if (found.kind === 'one') expect(found.stableId).toBe(`entryuuid:${plain}`);
      expect(found.kind === 'refused').toBe(count(ids) > 1 || count(names) > 1);
    }),
  );
});

describe('the type of a server', () => {
  it.each([
    [{ supportedCapabilities: ['1.2.840.113556.1.4.800'], vendorName: 'Samba Team' }, 'active-directory'],
    [{ vendorName: '389 Project', supportedExtension: ['2.16.840.1.113730.3.5.12'] }, '389ds'],
    [{ vendorName: '389 Project', supportedExtension: ['2.16.840.1.113730.3.8.10.1'] }, 'freeipa'],
    [{ objectClass: ['top', 'OpenLDAProotDSE'] }, 'openldap'],
    [{ objectClass: ['top'], vendorName: 'Another' }, undefined],
    [{}, undefined],
  ])('%j is %s', (root, type) => {
    expect(typeOfRoot(entryOf(root, ''))?.type).toBe(type);
  });
});

describe('the SID of the primary group', () => {
  const alice = Buffer.from('010500000000000515000000a065cf7e784b9b5fe77c8770 4f040000'.replace(' ', ''), 'hex');

  it('is that of the person with the last number replaced', () => {
    expect(siblingSid(alice, 513)?.toString('hex')).toBe('010500000000000515000000a065cf7e784b9b5fe77c877001020000');
  });

  it('is none for bytes that are no SID, or a number that is no relative id', () => {
    for (const sid of [Buffer.alloc(0), alice.subarray(0, 20), Buffer.concat([alice, alice])])
      expect(siblingSid(sid, 513)).toBeUndefined();
    for (const id of [-1, 1.5, 2 ** 32, Number.NaN]) expect(siblingSid(alice, id)).toBeUndefined();
  });
});
