/** The canonical text of JSON: one for every layout of the same content, and another for every other content. */

import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { canonicalizeJsonText } from '../../src/store/audit-chain.ts';

type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };

/** The same value with its members in another order and other blanks. */
function laidOut(value: Json, blank: string): string {
  if (Array.isArray(value))
    return `[${blank}${value.map((each) => laidOut(each, blank)).join(`${blank},${blank}`)}${blank}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value).toReversed();
  return `{${blank}${members.map(([name, each]) => `${JSON.stringify(name)}${blank}:${blank}${laidOut(each, blank)}`).join(`,${blank}`)}}`;
}

const anyJson: fc.Arbitrary<Json> = fc.jsonValue({ maxDepth: 4 }).map((value) => JSON.parse(JSON.stringify(value)));

test('the canonical text does not depend on the layout or the order of members', () => {
  fc.assert(
    fc.property(anyJson, fc.constantFrom('', ' ', '\n\t '), (value, blank) => {
      expect(canonicalizeJsonText(laidOut(value, blank))).toBe(canonicalizeJsonText(JSON.stringify(value)));
    }),
  );
});

test('is another for any other content', () => {
  fc.assert(
    fc.property(anyJson, anyJson, (one, two) => {
      expect(canonicalizeJsonText(JSON.stringify(one)) === canonicalizeJsonText(JSON.stringify(two))).toBe(
        isDeepStrictEqual(one, two),
      );
    }),
  );
});

test.each([
  ['12345678901234567890', '12345678901234567891'],
  ['0.1000000000000000055', '0.1'],
  ['1', '"1"'],
  ['"n1"', '1'],
  ['null', '"null"'],
  ['{}', '[]'],
  ['{"a":1}', '["a",1]'],
  ['{"a":[]}', '{"a":{}}'],
  ['{"members":[["a",1]]}', '{"a":1}'],
  ['{"__proto__":1}', '{}'],
  ['"a\\\\"', '"a"'],
  ['["a","b"]', '["a,b"]'],
  ['["\\"1"]', '["1"]'],
])('%s is not %s', (one, two) => {
  expect(canonicalizeJsonText(one)).not.toBe(canonicalizeJsonText(two));
});

test('is the same beside a number that needs care and without one', () => {
  fc.assert(
    fc.property(anyJson, (value) => {
      const text = JSON.stringify(value);
      expect(canonicalizeJsonText(`[${text},0.5]`)).toBe(`[${canonicalizeJsonText(text)},0.5]`);
    }),
  );
});

test('writes the same character one way', () => {
  expect(canonicalizeJsonText('"\\u00fc\\/"')).toBe(canonicalizeJsonText('"ü/"'));
});

test('takes texts of any length', () => {
  const long = JSON.stringify({ text: '\\"'.repeat(1_000_000) });
  expect(canonicalizeJsonText(long)).toHaveLength(long.length);
});
