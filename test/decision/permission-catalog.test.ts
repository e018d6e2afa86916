import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isNeeded, permissionCatalog } from '../../src/decision/permission-catalog.ts';
import { compilePatterns, covers } from '../../src/decision/permissions.ts';
import { editDistance } from '../../src/domain/text.ts';

const catalog = permissionCatalog(['chat:write', 'chat:read', 'embeddings:write', 'admin:keys', 'chat:write']);

describe('the catalog of permissions', () => {
  test('holds each permission once, in the order of their texts', () => {
    expect(catalog.permissions.map(({ text }) => text)).toEqual([
      'admin:keys',
      'chat:read',
      'chat:write',
      'embeddings:write',
    ]);
  });

  test('needs exactly the patterns that cover one of its permissions', () => {
    const part = fc.constantFrom('*', 'chat', 'embeddings', 'admin', 'write', 'read', 'keys', 'other');
    const pattern = fc.oneof(
      fc.constant('*'),
      fc.tuple(part, part).map(([resource, action]) => `${resource}:${action}`),
    );
    fc.assert(
      fc.property(pattern, (text) => {
        const set = compilePatterns([text]);
        expect(isNeeded(catalog, text)).toBe(catalog.permissions.some((permission) => covers(set, permission)));
      }),
    );
  });

  test.each([
    ['chat:wirte', 'chat:write'],
    ['chatt:read', 'chat:read'],
    ['embedding:*', 'embeddings:*'],
    ['*:wrte', '*:write'],
    ['admin:key', 'admin:keys'],
    [`chat:write${'x'.repeat(110)}`, 'chat:write'],
  ])('the nearest pattern to %s has the same form', (pattern, nearest) => {
    expect(catalog.nearest(pattern)).toBe(nearest);
    expect(catalog.nearest(pattern)).toBe(nearest);
  });

  test('without permissions there is no nearest pattern', () => {
    expect(permissionCatalog([]).nearest('chat:write')).toBeUndefined();
  });
});

describe('the edit distance', () => {
  const naive = (a: string, b: string): number => {
    if (a === '' || b === '') return a.length + b.length;
    const replace = naive(a.slice(1), b.slice(1)) + (a[0] === b[0] ? 0 : 1);
    return Math.min(replace, naive(a.slice(1), b) + 1, naive(a, b.slice(1)) + 1);
  };
  const word = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 5 });

  test('equals the result of a naive recursion, or its limit', () => {
    fc.assert(
      fc.property(word, word, fc.integer({ min: 1, max: 8 }), (a, b, limit) => {
        expect(editDistance(a, b)).toBe(naive(a, b));
        expect(editDistance(a, b, limit)).toBe(Math.min(limit, naive(a, b)));
      }),
    );
  });
});
