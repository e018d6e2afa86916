import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { escapeDnValue, foldName, normaliseDn, parseDn } from '../../../src/directory/dn.ts';
import { anyCharacter } from '../../support/properties.ts';

/**
 * RFC 4514, section 3, as it stands there: `string = [ ( leadchar / pair ) [ *( stringchar / pair ) ( trailchar / pair
 * ) ] ]`. Written as one expression, so that it shares nothing with the code under test.
 */
const PAIR = String.raw`\\(?:[ "#=+,;<>\\]|[0-9A-Fa-f]{2})`;
const LEAD = String.raw`[^\0 "#+,;<>\\]`;
const INNER = String.raw`[^\0"+,;<>\\]`;
const TRAIL = String.raw`[^\0 "+,;<>\\]`;
const STRING = new RegExp(`^(?:(?:${LEAD}|${PAIR})(?:(?:${INNER}|${PAIR})*(?:${TRAIL}|${PAIR}))?)?$`, 'u');

const SPECIAL = fc.constantFrom(...' #=+,;<>"\\*()\0\n', 'å', '中', '😀', 'a', 'Z', '2', 'C');
const text = fc.oneof(fc.string({ unit: anyCharacter }), fc.string({ unit: SPECIAL }), fc.string({ unit: 'grapheme' }));

describe('a value in a DN', () => {
  it('is escaped into the grammar of RFC 4514, for any text', () => {
    fc.assert(fc.property(text, (value) => STRING.test(escapeDnValue(value))));
  });

  it('is one value of one name: it neither ends it nor begins another', () => {
    fc.assert(
      fc.property(text, (value) => {
        expect(parseDn(`uid=${escapeDnValue(value)},ou=people,dc=example`)).toEqual([
          [{ type: 'uid', value }],
          [{ type: 'ou', value: 'people' }],
          [{ type: 'dc', value: 'example' }],
        ]);
      }),
    );
  });

  it.each([
    [',cn=admins', String.raw`\,cn\=admins`],
    ['#admin', String.raw`\#admin`],
    [' admin ', String.raw`\ admin\ `],
    ['+"<>;=\\', String.raw`\+\"\<\>\;\=\\`],
    ['a\0b', String.raw`a\00b`],
    ['a #b', 'a #b'],
    ['Åsa (Ö)*', 'Åsa (Ö)*'],
  ])('%j is escaped as %s', (value, escaped) => {
    expect(escapeDnValue(value)).toBe(escaped);
  });
});

describe('two spellings of one DN are one group', () => {
  it.each([
    ['cn=Doe\\, Jane,ou=people,dc=x', 'CN=doe\\2C jane, OU=People, DC=X'],
    ['cn=Jos\\C3\\A9,dc=x', 'cn=José,dc=x'],
    ['cn=Jose\u0301,dc=x', 'cn=Jos\u00e9,dc=x'],
    ['cn=a  b,dc=x', 'cn=A B,dc=x'],
    ['cn=#0403666f6f,dc=x', 'cn=foo,dc=x'],
    ['2.5.4.3=a,0.9.2342.19200300.100.1.25=x', 'cn=a,dc=x'],
    ['OID.2.5.4.3=a,domainComponent=x', 'cn=a,dc=x'],
    ['sn=B+cn=A,dc=x', 'cn=a+sn=b,dc=x'],
    ['cn=a\\=b,dc=x', 'cn=a=b,dc=x'],
    ['cn=\\23a,dc=x', 'cn=\\#a,dc=x'],
  ])('%s and %s', (one, other) => {
    expect(normaliseDn(one)).toBeDefined();
    expect(normaliseDn(one)).toBe(normaliseDn(other));
  });
});

describe('different groups stay different', () => {
  it.each([
    ['cn=admins,ou=groups,dc=x', 'cn=admins,ou=elsewhere,dc=x'],
    ['cn=admins,dc=x', 'cn=admins\\,dc=x'],
    ['cn=a+sn=b,dc=x', 'cn=a,sn=b,dc=x'],
    ['cn=a\\+sn=b,dc=x', 'cn=a+sn=b,dc=x'],
    ['cn=ab,dc=x', 'cn=a b,dc=x'],
    ['uid=a,dc=x', 'cn=a,dc=x'],
    ['cn=a,dc=x', 'cn=a,dc=x,dc=y'],
  ])('%s and %s', (one, other) => {
    expect(normaliseDn(one)).not.toBe(normaliseDn(other));
  });
});

describe('what is no DN is none', () => {
  it.each([
    'staff',
    'cn',
    '=x',
    'cn=a,',
    ',cn=a',
    'cn=a,,dc=x',
    'cn="a",dc=x',
    'cn=a;dc=x',
    'cn=<a>',
    'cn=a\\',
    'cn=a\\x',
    'c n=a',
    'cn=#0',
    'cn=#zz',
    'cn=\\ff',
    'cn=a\0',
    'cn=\ud800',
  ])('%j', (dn) => {
    expect(parseDn(dn)).toBeUndefined();
  });
});

it('the normal form is its own normal form, for any names', () => {
  const level = fc.array(fc.tuple(fc.constantFrom('cn', 'OU', '2.5.4.3', 'x-y'), text), { minLength: 1, maxLength: 3 });
  fc.assert(
    fc.property(fc.array(level, { minLength: 1, maxLength: 4 }), (levels) => {
      const dn = levels
        .map((parts) => parts.map(([type, value]) => `${type}=${escapeDnValue(value)}`).join('+'))
        .join(',');
      const normal = normaliseDn(dn);
      expect(normal).toBeDefined();
      expect(normaliseDn(normal ?? '')).toBe(normal);
    }),
  );
});

it('a value is the same written plainly, partly or wholly as bytes', () => {
  const hex = (part: string): string => part && Buffer.from(part).toString('hex').replace(/../g, '\\$&');
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), fc.string({ unit: 'grapheme' }), (one, other) => {
      const whole = parseDn(`cn=${hex(one + other)}`);
      expect(parseDn(`cn=${hex(one)}${escapeDnValue(other)}`)).toEqual(whole);
    }),
  );
});

it('any text is parsed or rejected, without an exception', () => {
  fc.assert(
    fc.property(
      text,
      (dn) =>
        [undefined, 'string'].includes(typeof (normaliseDn(dn) ?? undefined) as string) ||
        normaliseDn(dn) === undefined,
    ),
  );
});

it('names are compared without case, needless spaces and compatible forms', () => {
  expect(foldName('  ＡＬＩＣＥ\u00a0 Adams ')).toBe('alice adams');
});
