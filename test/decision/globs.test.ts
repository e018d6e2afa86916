import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { compileGlob, compileNames, globContains, globMatches, namesMatch } from '../../src/decision/globs.ts';

/** Character by character, trying every length for each star. */
function naiveMatches(glob: string, name: string): boolean {
  if (glob === '') return name === '';
  if (glob.startsWith('*')) {
    return Array.from({ length: name.length + 1 }, (_, taken) => name.slice(taken)).some((rest) =>
      naiveMatches(glob.slice(1), rest),
    );
  }
  return name !== '' && glob[0] === name[0] && naiveMatches(glob.slice(1), name.slice(1));
}

const glob = fc.string({ unit: fc.constantFrom('a', 'b', '/', '*'), maxLength: 7 });
const name = fc.string({ unit: fc.constantFrom('a', 'b', '/'), maxLength: 9 });

describe('globs', () => {
  test('match what trying every split matches', () => {
    fc.assert(
      fc.property(glob, name, (text, asked) => {
        expect(globMatches(compileGlob(text), asked)).toBe(naiveMatches(text, asked));
      }),
      { numRuns: 2000 },
    );
  });

  test('a star crosses slashes and may be empty', () => {
    expect(globMatches(compileGlob('meta/*'), 'meta/llama/3')).toBe(true);
    expect(globMatches(compileGlob('phi-*'), 'phi-')).toBe(true);
    expect(globMatches(compileGlob('*'), '')).toBe(true);
  });

  test('prefix and suffix do not share characters', () => {
    expect(globMatches(compileGlob('aba*ba'), 'aba')).toBe(false);
    expect(globMatches(compileGlob('ab*ba'), 'aba')).toBe(false);
  });

  test('characters of regular expressions stand for themselves', () => {
    expect(globMatches(compileGlob('a.c'), 'abc')).toBe(false);
    expect(globMatches(compileGlob('a?(b)+[c]*'), 'a?(b)+[c]d')).toBe(true);
  });

  test('many stars over a long name that does not match end in time linear in the name', () => {
    expect(globMatches(compileGlob(`${'a*'.repeat(200)}b`), 'a'.repeat(1_000_000))).toBe(false);
  });

  test('one glob contains another exactly when no name tells them apart', () => {
    fc.assert(
      fc.property(glob, glob, fc.array(name, { maxLength: 20 }), (outer, inner, names) => {
        if (globContains(compileGlob(outer), compileGlob(inner))) {
          for (const asked of names) if (naiveMatches(inner, asked)) expect(naiveMatches(outer, asked)).toBe(true);
        } else {
          const witness = inner.replaceAll('*', '§');
          expect(naiveMatches(inner, witness)).toBe(true);
          expect(naiveMatches(outer, witness)).toBe(false);
        }
      }),
      { numRuns: 2000 },
    );
  });

  test('a list of names matches when one of them does', () => {
    fc.assert(
      fc.property(fc.array(glob, { maxLength: 4 }), name, (list, asked) => {
        expect(namesMatch(compileNames(list), asked)).toBe(list.some((one) => naiveMatches(one, asked)));
      }),
      { numRuns: 1000 },
    );
  });
});
