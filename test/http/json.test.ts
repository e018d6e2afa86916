import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseJson } from '../../src/http/json.ts';
import { unstorable } from '../../src/http/storable.ts';

const bytes = (text: string) => new TextEncoder().encode(text);

/** JSON with members in any order and number, repeated ones among them. */
interface Member {
  readonly name: string;
  readonly value: Tree;
}
type Tree = string | number | boolean | null | readonly Tree[] | { readonly members: readonly Member[] };

const name = fc.constantFrom('a', 'A', 'b', '"', '\\"', '\u00e9', '{', 'a:b');
const { tree } = fc.letrec<{ tree: Tree }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 4, depthSize: 'small' },
    fc.string(),
    fc.integer(),
    fc.boolean(),
    fc.constant(null),
    fc.array(tie('tree'), { maxLength: 4 }),
    fc.record({ members: fc.array(fc.record({ name, value: tie('tree') }), { maxLength: 4 }) }),
  ),
}));

function written(value: Tree): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if ('members' in value)
    return `{${value.members.map((one) => `${JSON.stringify(one.name)} : ${written(one.value)}`).join(' , ')}}`;
  return `[${value.map(written).join(',')}]`;
}

function repeats(value: Tree): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (!('members' in value)) return value.some(repeats);
  const names = value.members.map((one) => one.name);
  return new Set(names).size < names.length || value.members.some((one) => repeats(one.value));
}

describe('parseJson', () => {
  test('reads what JSON.parse reads, and refuses exactly what repeats a member somewhere', () => {
    fc.assert(
      fc.property(tree, (value) => {
        const text = written(value);
        const result = parseJson(bytes(text));
        if (repeats(value)) expect(result.kind).toBe('error');
        else expect(result).toMatchObject({ kind: 'json', value: JSON.parse(text) });
      }),
    );
  });

  test('refuses what is not JSON, and never throws', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), (input) => {
        const result = parseJson(input);
        if (result.kind === 'json') expect(JSON.parse(new TextDecoder().decode(input))).toEqual(result.value);
      }),
    );
  });

  test('refuses a name that ends with a backslash, so that no body changes how the names of later bodies are read', () => {
    const written = [
      '{"h":[],"\\\\":0}',
      '{"h":[],"\\u005c":0}',
      '{"h":[],"n\\\\":0}',
      '[{"a":{"h":[],"\\\\\\\\":0}}]',
    ];
    for (const text of written) expect(parseJson(bytes(text))).toMatchObject({ kind: 'error' });
    for (const name of ['"', '\n', 'n"', '\\"', 'n\\"']) {
      expect(parseJson(bytes(JSON.stringify({ h: 1, [name]: 2 })))).toMatchObject({
        kind: 'json',
        value: { h: 1, [name]: 2 },
      });
    }
  });

  test('a member called __proto__ is a member like others', () => {
    const result = parseJson(bytes('{"__proto__":{"admin":true}}'));
    expect(result.kind === 'json' && Object.keys(Object(result.value))).toEqual(['__proto__']);
  });
});

test('text that cannot be kept is found wherever it is, in names too', () => {
  expect(unstorable({ a: ['x', '\0'], 'b/c': { d: '\ud800' }, 'e\0': 1, f: '\u{1f600}' })).toEqual([
    '/a/1',
    '/b~1c/d',
    '/e\0',
  ]);
});
