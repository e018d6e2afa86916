import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  compilePatterns,
  containingPatterns,
  covers,
  coversAny,
  isPermission,
  isPermissionPattern,
  patternContains,
  patternIntersection,
  permissionOf,
} from '../../src/decision/permissions.ts';
import { runs } from '../support/properties.ts';

const word = fc.constantFrom('chat', 'rag', 'a', 'read', 'write');
const part = fc.oneof(word, fc.constant('*'));
const pattern = fc.oneof(
  { weight: 1, arbitrary: fc.constant('*') },
  { weight: 6, arbitrary: fc.tuple(part, part).map(([resource, action]) => `${resource}:${action}`) },
);
const permission = fc.tuple(word, word).map(([resource, action]) => `${resource}:${action}`);

/** A pattern as its definition reads: each part is `*` or equal. */
function naiveCovers(text: string, asked: string): boolean {
  if (text === '*') return true;
  const [resource, action] = text.split(':');
  const [askedResource, askedAction] = asked.split(':');
  return (resource === '*' || resource === askedResource) && (action === '*' || action === askedAction);
}

describe('permission patterns', () => {
  test.each(['*', 'chat:*', '*:read', '*:*', 'chat:write', 'a1_-b:c'])('%s is a pattern', (text) => {
    expect(isPermissionPattern(text)).toBe(true);
  });

  test.each([
    '',
    'chat',
    'cha*:read',
    'chat:re*',
    'Chat:read',
    'chat:read:x',
    ':read',
    'chat:',
    '1a:b',
    '**',
    '*:',
    ' chat:read',
    'chat:read\n',
  ])('%j is no pattern', (text) => {
    expect(isPermissionPattern(text)).toBe(false);
  });

  test('a permission has no wildcard', () => {
    expect(isPermission('chat:write')).toBe(true);
    expect(isPermission('chat:*')).toBe(false);
    expect(isPermission('*')).toBe(false);
  });

  test('a set covers what one of its patterns covers, part by part', () => {
    fc.assert(
      fc.property(fc.array(pattern, { maxLength: 5 }), permission, (patterns, asked) => {
        expect(covers(compilePatterns(patterns), permissionOf(asked))).toBe(
          patterns.some((one) => naiveCovers(one, asked)),
        );
      }),
      { numRuns: runs(500) },
    );
  });

  test('a stored text that is no pattern never makes two lists the same', () => {
    const [odd, plain] = [['chat:read *'], ['chat:read', '*']];
    expect(covers(compilePatterns(odd), permissionOf('rag:write'))).toBe(false);
    expect(covers(compilePatterns(plain), permissionOf('rag:write'))).toBe(true);
    expect(covers(compilePatterns([...plain, 'x']), permissionOf('rag:write'))).toBe(true);
    expect(covers(compilePatterns(['chat:read * x']), permissionOf('rag:write'))).toBe(false);
  });

  test('either of two permissions suffices', () => {
    const set = compilePatterns(['rag:read']);
    expect(coversAny(set, [permissionOf('rag:query'), permissionOf('rag:read')])).toBe(true);
    expect(coversAny(set, [permissionOf('rag:query'), permissionOf('rag:write')])).toBe(false);
  });

  test('an internal permission such as self is covered by * only', () => {
    expect(covers(compilePatterns(['*']), permissionOf('self'))).toBe(true);
    expect(covers(compilePatterns(['admin:*', '*:read']), permissionOf('self'))).toBe(false);
  });

  test('a pattern contains another exactly when it covers every permission that the other does', () => {
    const words = ['chat', 'rag', 'a', 'read', 'write', 'never-named'];
    const all = words.flatMap((resource) => words.map((action) => `${resource}:${action}`));
    fc.assert(
      fc.property(pattern, pattern, (outer, inner) => {
        const naive = all.every((asked) => !naiveCovers(inner, asked) || naiveCovers(outer, asked));
        expect(patternContains(outer, inner)).toBe(naive);
      }),
      { numRuns: runs(500) },
    );
  });

  test('the patternIntersection covers exactly what both cover', () => {
    fc.assert(
      fc.property(pattern, pattern, permission, (left, right, asked) => {
        const both = patternIntersection(left, right);
        expect(both !== undefined && naiveCovers(both, asked)).toBe(
          naiveCovers(left, asked) && naiveCovers(right, asked),
        );
      }),
      { numRuns: runs(500) },
    );
  });
});

test('the patterns that contain a pattern are those of all that do', () => {
  fc.assert(
    fc.property(pattern, pattern, (outer, inner) => {
      expect(containingPatterns(inner).includes(outer)).toBe(patternContains(outer, inner));
    }),
    { numRuns: runs(500) },
  );
});
