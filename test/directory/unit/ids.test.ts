import fc from 'fast-check';
import { EqualityFilter } from 'ldapts';
import { describe, expect, it } from 'vitest';
import { idFilter, stableIdOf } from '../../../src/directory/ids.ts';
import { siblingSid } from '../../../src/directory/sid.ts';
import { entryOf } from './entries.ts';

const UUID = '7bcf4613-b4be-49bc-9311-22def1a85965';

describe('the id that stays', () => {
  it('is Active Directory’s objectGUID in the notation of its tools', () => {
    const objectGUID = Buffer.from('724840f8aa766949 91a8621e8e3a902f'.replace(' ', ''), 'hex');
    expect(stableIdOf(entryOf({ objectGUID }))).toBe('objectguid:f8404872-76aa-4969-91a8-621e8e3a902f');
  });

  it.each([
    [{ entryUUID: UUID }, `entryuuid:${UUID}`],
    [
      { ipaUniqueID: UUID.toUpperCase(), nsUniqueId: 'fc0e1104-e5ce11f1-bff59b6b-340761da', entryUUID: UUID },
      `ipauniqueid:${UUID}`,
    ],
    [{ nsuniqueid: 'fc0e1104-e5ce11f1-bff59b6b-340761da', entryUUID: UUID }, 'nsuniqueid:fc0e1104-e5ce11f1-bff59b6b-340761da'],
    [{ ipaUniqueID: 'autogenerate' }, undefined],
    [{ uid: 'alice' }, undefined],
  ])('%j', (attributes, id) => {
    expect(stableIdOf(entryOf(attributes))).toBe(id);
  });

  it('finds the very entry that it was read from', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 16, maxLength: 16 }), (bytes) => {
        const id = stableIdOf(entryOf({ objectGUID: Buffer.from(bytes) })) ?? '';
        const filter = idFilter(id);
        expect(filter).toBeInstanceOf(EqualityFilter);
        expect(filter).toMatchObject({ attribute: 'objectGUID', value: Buffer.from(bytes) });
      }),
    );
  });

  it.each(['', 'uid:alice', UUID, `entryuuid:${UUID})(uid=*`, 'entryuuid:', 'objectguid:*'])('%j is none', (text) => {
    expect(idFilter(text)).toBeUndefined();
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
