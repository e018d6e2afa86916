/**
 * The bounds of the structure of a JSON text, compared with a naive reader, and the bytes that a rejection of a hostile
 * text reads.
 */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { BODY_BOUNDS, structureOf } from '../../src/http/body-structure.ts';

const { maxDepth, maxMembers, maxNameLength, maxValues } = BODY_BOUNDS;
const MIB = 1_048_576;

/** Parses the text and counts the result, without repeated members, which JSON.parse drops. */
function naive(text: string): { readonly depth: number; readonly members: number; readonly name: number } {
  const found = { depth: 0, members: 0, name: 0 };
  const look = (value: unknown, depth: number): void => {
    if (typeof value !== 'object' || value === null) return;
    found.depth = Math.max(found.depth, depth);
    const entries = Object.entries(value);
    if (!Array.isArray(value)) {
      found.members = Math.max(found.members, entries.length);
      for (const [name] of entries) found.name = Math.max(found.name, JSON.stringify(name).length - 2);
    }
    for (const [, member] of entries) look(member, depth + 1);
  };
  look(JSON.parse(text), 1);
  return found;
}

const value = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 40, depthSize: 'max' },
    fc.constantFrom(0, 'a', '"', '\\', '{', ',', null, true),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(
      fc.string({ maxLength: 6 }).map((text) => text.replace(/\\+$/, '')),
      tie('value'),
      { maxKeys: 3 },
    ),
    // Around the bounds.
    fc.integer({ min: 60, max: 70 }).map((n) => Object.fromEntries(Array.from({ length: n }, (_, i) => [`m${i}`, i]))),
    fc.integer({ min: 505, max: 520 }).map((n) => ({ ['n'.repeat(n)]: 0 })),
    fc.integer({ min: 28, max: 36 }).map((n) => JSON.parse('['.repeat(n) + ']'.repeat(n)) as unknown),
  ),
})).value;

test('a text is within the bounds exactly when its depth, members and names are', () => {
  fc.assert(
    fc.property(value, (made) => {
      const text = JSON.stringify(made);
      const { depth, members, name } = naive(text);
      const within = depth <= maxDepth && members <= maxMembers && name <= maxNameLength;
      expect(structureOf(text).kind === 'within').toBe(within);
    }),
  );
});

test('any text is read without an error', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom('{', '}', '[', ']', ',', '"', '\\', ':', 'a', '\ud800') }),
      (text) => {
        expect(['within', 'unreadable', 'excessive']).toContain(structureOf(text).kind);
      },
    ),
  );
});

test.each(['{"a', '{"a\\', '{"', '"a', '{"a":0,"b'])(
  'the text %s, which ends inside a string, is left to the parser',
  (text) => {
    expect(structureOf(text).kind).toBe('within');
  },
);

describe('of 1 MiB', () => {
  const filled = (unit: string) => unit.repeat(Math.ceil(MIB / unit.length));
  const members = Array.from({ length: 100_000 }, (_, i) => `"m${i}":0`).join();

  test.each([
    ['brackets that are never closed', filled('['), 'unreadable', maxDepth + 1],
    ['empty arrays', `[${filled('[],')}0]`, 'excessive', 3 * maxValues],
    ['empty objects', `[${filled('{},')}0]`, 'excessive', 3 * maxValues],
    ['empty strings', `[${filled('"",')}0]`, 'excessive', 3 * maxValues],
    ['numbers', `[${filled('1,')}0]`, 'excessive', 3 * maxValues],
    ['objects of one member', `[${filled('{"a":0},')}0]`, 'excessive', 8 * maxValues],
    ['distinct members', `{${members}}`, 'excessive', 10 * maxMembers],
    ['one member again and again', `{${filled('"a":0,')}"a":0}`, 'unreadable', 10],
    ['a long name', `{"${filled('a')}":0}`, 'excessive', maxNameLength + 4],
    ['a long name of escapes', `{"${filled('\\u0061')}":0}`, 'excessive', maxNameLength + 4],
  ])('%s are refused after a bounded number of characters', (_name, text, kind, readAtMost) => {
    const structure = structureOf(text);
    expect(structure.kind).toBe(kind);
    expect(structure.kind === 'within' ? text.length : structure.readTo).toBeLessThanOrEqual(readAtMost);
  });

  test('an import of 1,000 keys with all members is within the bounds', () => {
    const key = {
      digest: '0'.repeat(64),
      prefix: 'sk-old-1',
      last_four: 'abcd',
      user_id: null,
      name: 'n',
      description: 'd',
      metadata: Object.fromEntries(Array.from({ length: 16 }, (_, i) => [`m${i}`, 'v'])),
      scopes: Array(12).fill('chat:read'),
      resource_constraints: { models: Array(8).fill('m'), collections: ['c'], agents: ['a'] },
      rate_limit_rpm: 60,
      rate_limits: [{ models: ['m'], parallel: 1 }],
      expires_in_days: 90,
    };
    const text = JSON.stringify({ keys: Array(1000).fill(key) });
    expect([text.length <= MIB, structureOf(text).kind]).toEqual([true, 'within']);
  });

  test('the largest batch that a schema takes is within the bounds', () => {
    const event = {
      id: 'a',
      model: 'm',
      key_id: null,
      user_id: null,
      time: '',
      prompt_tokens: 0,
      completion_tokens: 0,
      requests: 1,
    };
    expect(structureOf(JSON.stringify({ events: Array(1000).fill(event) }))).toMatchObject({ kind: 'within' });
  });
});
