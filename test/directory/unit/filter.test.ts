import fc from 'fast-check';
import { AndFilter, EqualityFilter, PresenceFilter, SubstringFilter } from 'ldapts';
import { describe, expect, it } from 'vitest';
import {
  anyOf,
  decodeHighBytes,
  escapeFilterValue,
  fillFilter,
  hasAnyForm,
  isFilterTemplate,
  parseFilter,
} from '../../../src/directory/filter.ts';
import { anyCharacter } from '../../support/properties.ts';

/**
 * RFC 4515, section 3: `assertionvalue = *(normal / escaped)`; normal is everything but NUL, parentheses, asterisk and
 * backslash.
 */
const ASSERTION_VALUE = /^(?:[^\0()*\\]|\\[0-9A-Fa-f]{2})*$/u;

const unit = fc.constantFrom(...'*()\\\0 &|!=<>~:#{}01\n', 'å', '中', '😀', 'a');
const text = fc.oneof(fc.string({ unit: anyCharacter }), fc.string({ unit }));

describe('a value in a filter', () => {
  it('is escaped into the grammar of RFC 4515, for any text', () => {
    fc.assert(fc.property(text, (value) => ASSERTION_VALUE.test(escapeFilterValue(value))));
  });

  it('is one value of one comparison, and the very value', () => {
    fc.assert(
      fc.property(text, (value) => {
        const filter = parseFilter(fillFilter('(&(objectClass=person)(uid={0}))', [value]));
        expect(filter).toBeInstanceOf(AndFilter);
        const [, uid] = filter instanceof AndFilter ? filter.filters : [];
        expect(uid).toBeInstanceOf(EqualityFilter);
        expect(uid).toMatchObject({ attribute: 'uid', value });
      }),
    );
  });

  it('is put in once: what looks like a placeholder in it is none', () => {
    expect(fillFilter('(&(a={0})(b={1}))', ['{1}', '{0}'])).toBe('(&(a={1})(b={0}))');
  });

  it.each([
    ['*', String.raw`(uid=\2a)`],
    ['*)(uid=admin', String.raw`(uid=\2a\29\28uid=admin)`],
    ['admin)(|(uid=*', String.raw`(uid=admin\29\28|\28uid=\2a)`],
    ['a\0b', String.raw`(uid=a\00b)`],
    ['$&$1', '(uid=$&$1)'],
  ])('%j', (value, filter) => {
    expect(fillFilter('(uid={0})', [value])).toBe(filter);
  });
});

describe('a configured filter', () => {
  const described = fc.oneof(
    fc.constantFrom('cn', 'x-own', '2.5.4.3', '0.9.2342.19200300.100.1.1'),
    fc
      .tuple(fc.constantFrom('cn', '2.5.4.3'), fc.constantFrom(';lang-de', ';binary;x-1'))
      .map((parts) => parts.join('')),
  );
  const simple = fc
    .tuple(
      described,
      fc.constantFrom('=x', '=*', '=a*b', '>=1', '<=1', '~=x', ':=x', ':dn:1.2.3:=x', ':caseExactMatch:=x'),
    )
    .map((parts) => `(${parts.join('')})`);
  const { filter: anyFilter } = fc.letrec<{ filter: string }>((tie) => ({
    filter: fc.oneof(
      { depthSize: 'small' },
      simple,
      tie('filter').map((inner) => `(!${inner})`),
      fc
        .tuple(fc.constantFrom('&', '|'), fc.array(tie('filter'), { minLength: 1, maxLength: 3 }))
        .map(([operator, inner]) => `(${operator}${inner.join('')})`),
    ),
  }));
  it('keeps its attribute descriptions: names, object identifiers and options (RFC 4512)', () => {
    fc.assert(
      fc.property(anyFilter, (template) => {
        expect(parseFilter(template)?.toString()).toBe(template);
      }),
    );
  });

  it.each([
    '(uid={0})',
    '(&(objectClass=person)(|(uid={0})(mail={0})))',
    '(member:1.2.840.113556.1.4.1941:={0})',
    '(!(uid={0}))',
    '(2.5.4.3={0})',
    '(&(2.5.4.0=person)(|(cn;lang-de={0})(userCertificate;binary;x-other=*)(1.2.3>=1)(cn;x~={1})))',
    '(0.9.2342.19200300.100.1.1;x-a:dn:caseExactMatch:={0})',
  ])('%s can be used', (template) => {
    expect(isFilterTemplate(template)).toBe(true);
  });

  it.each(['uid={0}', '(uid={0}', '(&(uid={0})', '()', '', '(uid={0}))', '({0})'])('%s cannot', (template) => {
    expect(isFilterTemplate(template)).toBe(false);
  });

  it('that writes other letters as bytes means the letters', () => {
    expect(decodeHighBytes(String.raw`(&(o=J\c3\b6rg)(cn=\2a{0}))`)).toBe(String.raw`(&(o=Jörg)(cn=\2a{0}))`);
    expect(decodeHighBytes(String.raw`(o=\ff)`)).toBeUndefined();
  });

  it('gives a filter for every entry that it could find with any name', () => {
    expect(parseFilter(anyOf('(uid={0})'))).toBeInstanceOf(PresenceFilter);
    expect(parseFilter(anyOf('(mail={0}@example.com)'))).toBeInstanceOf(SubstringFilter);
    expect([hasAnyForm('(|(uid={0})(mail={1}))'), hasAnyForm('(uid:caseExactMatch:={0})')]).toEqual([true, false]);
  });
});
