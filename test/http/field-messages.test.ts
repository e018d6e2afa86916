/** Messages about a member or parameter: its name, the allowed values and the sent one, but never a secret. */

import fc from 'fast-check';
import { type TSchema, Type } from 'typebox';
import { describe, expect, it, test } from 'vitest';
import { fieldSentence } from '../../src/domain/problem-details.ts';
import { validatorOf } from '../../src/http/validation.ts';

const CLOSED = { additionalProperties: false };

function sentences(schema: TSchema, value: unknown): readonly string[] {
  const result = validatorOf(schema)(value, true);
  return result.kind === 'valid' ? [] : result.errors.map(fieldSentence);
}

test.each([
  [
    'a number out of range',
    Type.Integer({ minimum: 1, maximum: 200 }),
    500,
    '`/m` must be between 1 and 200; you sent 500.',
  ],
  ['a number that is too small', Type.Integer({ minimum: 1 }), 0, '`/m` must be at least 1; you sent 0.'],
  ['another type', Type.Integer(), 'many', '`/m` must be a whole number; you sent "many".'],
  ['a list in place of a text', Type.String(), ['a'], '`/m` must be a string; you sent a list.'],
  [
    'a text that is too long',
    Type.String({ minLength: 1, maxLength: 3 }),
    'four',
    '`/m` must have 1 to 3 characters; you sent 4.',
  ],
  ['a long list', Type.Array(Type.String(), { maxItems: 1 }), ['a', 'b'], '`/m` must have at most 1 item; you sent 2.'],
  ['an unknown word', Type.Enum(['allow', 'deny']), 'maybe', '`/m` must be one of allow, deny; you sent "maybe".'],
  [
    'no time',
    Type.String({ format: 'date-time' }),
    'soon',
    '`/m` must be a time such as 2026-11-30T12:00:00Z (RFC 3339); you sent "soon".',
  ],
])('a message about %s names the member, what is allowed and what was sent', (_what, schema, value, sentence) => {
  expect(sentences(Type.Object({ m: schema }, CLOSED), { m: value })).toEqual([sentence]);
});

describe('a message about a member that is', () => {
  const schema = Type.Object({ max_users: Type.Integer(), name: Type.String() }, CLOSED);
  it('missing says that it is required', () => {
    expect(sentences(schema, { max_users: 1 })).toEqual(['`/name` is required.']);
  });
  it('unknown names the one that is nearest, or all', () => {
    expect(sentences(schema, { max_users: 1, name: 'a', max_user: 1 })).toEqual([
      '`/max_user` is unknown; did you mean max_users?',
    ]);
    expect(sentences(schema, { max_users: 1, name: 'a', color: 1 })).toEqual([
      '`/color` is unknown. Known ones: max_users, name.',
    ]);
  });
  it('wrong comes together with all others of the body', () => {
    expect(sentences(schema, { max_users: 'a', name: 1 })).toHaveLength(2);
  });
});

const NAMES = ['password', 'old_password', 'token', 'refresh_token', 'secret', 'key', 'keys', 'credential', 'digest'];
const KINDS = [
  Type.Integer(),
  Type.String({ maxLength: 1 }),
  Type.String({ pattern: '^x$' }),
  Type.Enum(['x', 'y']),
  Type.String({ format: 'email' }),
];

it('no message shows the value of a member that may hold a secret', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...NAMES),
      fc.constantFrom(...KINDS),
      fc.string({ minLength: 12, maxLength: 40 }),
      (name, kind, value) => {
        const secret = `S3cr3t${value}`;
        for (const sentence of sentences(Type.Object({ [name]: kind }, CLOSED), { [name]: secret })) {
          expect(sentence).not.toContain('S3cr3t');
        }
        expect(sentences(Type.Object({ [name]: Type.Array(kind) }, CLOSED), { [name]: [secret] }).join()).not.toContain(
          'S3cr3t',
        );
      },
    ),
  );
});

it('a message is bounded, however long the value is', () => {
  const [sentence = ''] = sentences(Type.Object({ m: Type.Integer() }, CLOSED), { m: 'x'.repeat(100_000) });
  expect(sentence.length).toBeLessThan(200);
});
