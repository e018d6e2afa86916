/** Names and descriptions hold no characters that make two of them look the same. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { hiddenIn, VISIBLE_TEXT, VISIBLE_TITLE, withoutHidden } from '../../src/domain/visible-text.ts';
import { runs } from '../support/properties.ts';
import { type Harness, it, outcome } from './harness.ts';
import { makeOne, newBody } from './resources.ts';

let h: Harness;
it.beforeAll(({ harness }) => {
  h = harness;
});

const CODES = [
  ...[0xad, 0x61c, 0x180e, 0x200b, 0x200e, 0x200f, 0x2028, 0x202a, 0x202e, 0x2060, 0x2064, 0x2066, 0x2069, 0x206f],
  ...[0xfeff, 0xfff9, 0xe0001, 0xe0061],
];
const NEVER = new Set(CODES.map((code) => String.fromCodePoint(code)));
const JOINERS = ['\u200c', '\u200d'];
const JOINABLE = ['ی', 'م', 'क', '\u094d', '👩', '💻', '\u{1f3fd}', '\ufe0f'];
const OTHERS = ['a', 'é', 'e\u0301', 'б', 'ß', ' ', '-', '1', '日', '\n'];

/** The obvious twin: each character with its neighbors. */
function naiveHidden(text: string): readonly string[] {
  const all = [...text];
  const joins = (at: number): boolean => JOINABLE.includes(all[at] ?? '') || all[at] === '日';
  return all.filter((each, at) => NEVER.has(each) || (JOINERS.includes(each) && !(joins(at - 1) && joins(at + 1))));
}

const text = fc
  .array(fc.constantFrom(...NEVER, ...JOINERS, ...JOINERS, ...JOINERS, ...JOINABLE, ...JOINABLE, ...OTHERS), {
    maxLength: 12,
  })
  .map((parts) => parts.join(''));

test('the hidden characters of a text are those that the naive rule finds, and the text without them has none', () => {
  fc.assert(
    fc.property(text, (sample) => {
      const hidden = naiveHidden(sample);
      const named = [...new Set(hidden)].map(
        (each) => `U+${each.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0')}`,
      );
      expect(hiddenIn(sample)).toEqual(named);
      expect(new RegExp(VISIBLE_TEXT, 'u').test(sample)).toBe(hidden.length === 0);
      expect(new RegExp(VISIBLE_TITLE, 'u').test(sample)).toBe(hidden.length === 0 && sample.trim() !== '');
      expect(hiddenIn(withoutHidden(sample))).toEqual([]);
      expect([...sample].length - [...withoutHidden(sample)].length).toBe(hidden.length);
    }),
    { numRuns: runs(5_000) },
  );
});

test.each(['می\u200cخواهم', '👩🏽\u200d💻', '🏳️\u200d🌈', 'क्\u200dष', 'Zoë', 'Łukasz', '李 雷', "O'Brien-Ångström"])(
  'the name %s is visible text',
  (name) => expect(hiddenIn(name)).toEqual([]),
);

const MEMBERS = [
  ['users', 'name'],
  ['users', 'department'],
  ['tenants', 'name'],
  ['roles', 'description'],
  ['policies', 'description'],
  ['api-keys', 'name'],
  ['api-keys', 'description'],
] as const;

describe.each(MEMBERS)('%s refuse hidden characters in the member %s', (kind, member) => {
  test.each(['Ada\u202e', 'Ad\u200ba', 'Ada\u200d'])('when they create and change %j', async (value) => {
    const message = /^Must not contain characters that cannot be seen, .* Remove U\+20(?:0B|0D|2E)\.$/;
    const problem = {
      status: 422,
      json: { code: 'invalid_field', errors: [{ path: `/${member}`, message: expect.stringMatching(message) }] },
    };
    const as = h.root.token;
    const body = { ...newBody(kind), [member]: value };
    expect(await h.api('POST', `/v1/iam/${kind}`, { as, body })).toMatchObject(problem);
    const { path } = await makeOne(h, kind);
    expect(await h.api('PUT', path, { as, body: { [member]: value } })).toMatchObject(problem);
    expect(outcome(await h.api('PUT', path, { as, body: { [member]: 'Ada' } }))).toBe('200');
  });
});
