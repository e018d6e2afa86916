import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import {
  compileGlob,
  compileNames,
  globContains,
  globMatches,
  isWithinBounds,
  namesMatch,
} from '../../src/decision/globs.ts';
import { MAX_RESOURCE_NAME, MAX_RULE_WORK, ruleWork } from '../../src/decision/limits.ts';
import { indexOfName, packPieces } from '../../src/decision/name-index.ts';
import { enough, runs } from '../support/properties.ts';
import { tableMatches } from './naive-glob.ts';

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
  test('match the same names as a matcher that tries every split', () => {
    fc.assert(
      fc.property(glob, name, (text, asked) => {
        expect(globMatches(compileGlob(text), asked)).toBe(naiveMatches(text, asked));
      }),
      { numRuns: runs(2000) },
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

  test('characters of regular expressions are literal', () => {
    expect(globMatches(compileGlob('a.c'), 'abc')).toBe(false);
    expect(globMatches(compileGlob('a?(b)+[c]*'), 'a?(b)+[c]d')).toBe(true);
  });

  test('many stars over a long name that does not match end in time linear in the name', () => {
    expect(globMatches(compileGlob(`${'a*'.repeat(200)}b`), 'a'.repeat(1_000_000))).toBe(false);
  });

  test('one glob contains another exactly if it matches every name that the other matches', () => {
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
      { numRuns: runs(2000) },
    );
  });

  test('a long list of prefixes matches when one of them begins the name', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'b', '/'), maxLength: 5 });
    fc.assert(
      fc.property(fc.array(text, { minLength: 7, maxLength: 30 }), text, (prefixes, asked) => {
        const set = compileNames(
          prefixes.map((one) => `${one}x*`),
          'leave out',
        );
        expect(namesMatch(set, `${asked}xa`, ruleWork())).toBe(
          prefixes.some((one) => `${asked}xa`.startsWith(`${one}x`)),
        );
        expect(namesMatch(set, asked, ruleWork())).toBe(false);
      }),
      { numRuns: runs(500) },
    );
  });

  test('a list of names matches when one of them does', () => {
    fc.assert(
      fc.property(fc.array(glob, { maxLength: 4 }), name, (list, asked) => {
        expect(namesMatch(compileNames(list, 'leave out'), asked, ruleWork())).toBe(
          list.some((one) => naiveMatches(one, asked)),
        );
      }),
      { numRuns: runs(1000) },
    );
  });
});

/** Few letters and many repeats, so that pieces occur often, overlap and nearly occur. */
const run = fc
  .tuple(fc.constantFrom('a', 'b', 'ab', 'aab', '/'), fc.integer({ min: 1, max: 40 }))
  .map(([text, times]) => text.repeat(times));
const longName = fc
  .array(run, { minLength: 1, maxLength: 12 })
  .map((runs) => runs.join('').slice(0, MAX_RESOURCE_NAME));
const piece = fc.tuple(run, fc.nat(20), fc.nat(60)).map(([text, from, length]) => text.slice(from, from + length));
const longGlob = fc.array(piece, { minLength: 2, maxLength: 9 }).map((pieces) => pieces.join('*').slice(0, 256));
/** Globs cut out of the name, which match it unless they are changed. */
const nameAndGlobs = longName.chain((text) => {
  const cut = fc
    .uniqueArray(fc.nat(text.length), { minLength: 1, maxLength: 10 })
    .map((places) => places.toSorted((left, right) => left - right))
    .map((places) => places.map((from, i) => text.slice(from, i % 2 === 0 ? places[i + 1] : from)).join('*'));
  return fc.tuple(
    fc.constant(text),
    fc.array(
      fc.oneof(
        longGlob,
        cut,
        cut.map((one) => `*${one}*`),
      ),
      { maxLength: 4 },
    ),
  );
});

describe('the index of a name', () => {
  test('lists with long names, many stars and pieces of every length match what the table of each glob matches', () => {
    const seen = { true: 0, false: 0 };
    fc.assert(
      fc.property(nameAndGlobs, ([text, globs]) => {
        const bounded = globs.filter(isWithinBounds);
        const matches = namesMatch(compileNames(bounded, 'leave out'), text, ruleWork());
        expect(matches).toBe(bounded.some((one) => tableMatches(one, text)));
        seen[matches ? 'true' : 'false']++;
      }),
      { numRuns: runs(1500) },
    );
    expect(Math.min(seen.true, seen.false)).toBeGreaterThanOrEqual(enough(200));
  });

  test('finds exactly the pieces of a repetitive name', () => {
    const text = 'aaab'.repeat(60) + 'aab'.repeat(60);
    const index = indexOfName(text);
    for (let from = 0; from < text.length; from += 7) {
      for (let length = 1; from + length <= text.length; length += 13) {
        const wanted = text.slice(from, from + length);
        const changed = `${wanted.slice(0, length >> 1)}c${wanted.slice((length >> 1) + 1)}`;
        for (const start of [0, from, from + 1]) {
          expect(index.mayHold(packPieces([wanted]), start, text.length)).toBe(text.includes(wanted, start));
        }
        expect(index.mayHold(packPieces([changed]), 0, text.length)).toBe(false);
      }
    }
  });

  test('answers for its own name after more names than are kept', () => {
    const names = Array.from({ length: 200 }, (_, i) => `${'x'.repeat(60)}${i}y${'z'.repeat(i)}`);
    for (let round = 0; round < 2; round++) {
      for (const [i, text] of names.entries()) {
        const set = compileNames([`*x${i}y*`, '*nothing*of*it*'], 'leave out');
        expect(namesMatch(set, text, ruleWork())).toBe(true);
        expect(namesMatch(compileNames([`*x${i + 1000}y*`], 'leave out'), text, ruleWork())).toBe(false);
      }
    }
  });

  test('a name of characters beyond the basic plane is searched by its code units, like other names', () => {
    const text = `${'😀é'.repeat(100)}日本${'😀'.repeat(20)}`;
    expect(namesMatch(compileNames(['*é日*😀*😀'], 'leave out'), text, ruleWork())).toBe(true);
    expect(namesMatch(compileNames(['*日é*'], 'leave out'), text, ruleWork())).toBe(false);
  });
});

describe('the work of a list', () => {
  const worst = Array.from({ length: 200 }, (_, i) => `*${'aaaab*'.repeat(7)}${i}`);

  test('is bounded by pieces and names, for any letters: a list of 200 globs of 8 stars against 64 long names', () => {
    const work = ruleWork();
    const set = compileNames(worst, 'leave out');
    for (let i = 0; i < 64; i++) namesMatch(set, `${'aaaa'.repeat(125)}b${i}-`, work);
    expect(MAX_RULE_WORK - work.left).toBeLessThanOrEqual(64 * (3 + 8 + 200 * (2 + 7)));
    expect(work.left).toBeGreaterThan(0);
  });

  test('after it is used up, every answer is no, and the work stays used up', () => {
    const work = { left: 5 };
    const set = compileNames([...worst, 'exact', 'begin*'], 'leave out');
    expect(namesMatch(set, 'a'.repeat(500), work)).toBe(false);
    expect(work.left).toBeLessThan(0);
    for (const text of ['exact', 'beginning', 'aaaab']) expect(namesMatch(set, text, work)).toBe(false);
  });
});

test('a long name is not read again for each glob whose piece it does not have', () => {
  const globs = Array.from({ length: 100 }, (_, i) => compileGlob(`*${'a'.repeat(100)}b${'a'.repeat(100)}*${i}*`));
  const [name, short] = ['a'.repeat(MAX_RESOURCE_NAME), 'a'];
  const search = vi.spyOn(String.prototype, 'indexOf');
  try {
    expect(globs.some((glob) => globMatches(glob, name))).toBe(false);
    expect(search).not.toHaveBeenCalled();
    expect(globMatches(compileGlob('*a*'), short)).toBe(true);
    expect(search).toHaveBeenCalled();
  } finally {
    search.mockRestore();
  }
});

describe('globs beyond the bounds, which only an older version can have stored', () => {
  const many = `secret-${'*a'.repeat(9)}*-end`;
  const long = `secret-${'x'.repeat(260)}*-end`;

  test('match nothing in a grant or an allow', () => {
    for (const text of [many, long]) {
      const set = compileNames([text, 'other'], 'leave out');
      expect(namesMatch(set, text.replaceAll('*', ''), ruleWork())).toBe(false);
      expect(namesMatch(set, 'other', ruleWork())).toBe(true);
    }
  });

  test('match all that they matched, and what begins and ends as they do, in a deny', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'b', '*'), maxLength: 30 });
    fc.assert(
      fc.property(text, fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 30 }), (stars, asked) => {
        const oversized = `${stars}${'*b'.repeat(9)}${stars}`;
        if (tableMatches(oversized, asked))
          expect(namesMatch(compileNames([oversized], 'widen'), asked, ruleWork())).toBe(true);
      }),
      { numRuns: runs(1000) },
    );
    expect(namesMatch(compileNames([many], 'widen'), 'secret-plans-end', ruleWork())).toBe(true);
    expect(namesMatch(compileNames([many], 'widen'), 'plans-end', ruleWork())).toBe(false);
  });

  test('a name without stars is looked up, however long it is', () => {
    const name = 'x'.repeat(400);
    for (const oversized of ['widen', 'leave out'] as const) {
      expect(namesMatch(compileNames([name], oversized), name, ruleWork())).toBe(true);
      expect(namesMatch(compileNames([name], oversized), `${name}x`, ruleWork())).toBe(false);
    }
  });
});
