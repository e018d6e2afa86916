/** The checks of phrases and of exported names. */

import { describe, expect, it } from 'vitest';
import { sourceFiles } from '../scripts/imports.ts';
import { sharedNames } from '../scripts/lib/exported-names.ts';
import { findPhrases } from '../scripts/lib/wording.ts';

const ROOT = new URL('..', import.meta.url).pathname;

describe('the check of names', () => {
  it('finds a name that two files export, and no other', () => {
    const files = [
      { path: 'src/a.ts', text: 'export interface Route {}\nexport const one = 1;\n' },
      { path: 'src/b.ts', text: 'export type Route = string;\nexport function two() {}\n' },
    ];
    expect(sharedNames(files)).toEqual([{ name: 'Route', files: ['src/a.ts', 'src/b.ts'] }]);
  });
});

describe('the check of phrases', () => {
  it.each([
    ['/** What a key is. */', 'What'],
    ['// Whoever asks is told.', 'Whoever'],
    ['/**\n * A key.\n * Of the tenant: its id.\n */', 'Of the'],
    ['/** The limit, unless told otherwise. */', 'unless told'],
    ['/** It waits. Should the server stop, it ends. */', 'Should the'],
  ])('finds %j', (source, phrase) => {
    expect(findPhrases({ path: 'src/a.ts', text: source }).map(({ text }) => text)).toContain(phrase);
  });

  it.each(["const text = 'whoever';", '/** The key that `whoever` names. */', '/** Returns the owner of the key. */'])(
    'finds nothing in %j',
    (source) => {
      expect(findPhrases({ path: 'src/a.ts', text: source })).toEqual([]);
    },
  );
});

it('every source file is read by the checks', async () => {
  expect((await sourceFiles(ROOT)).filter(({ path }) => path.startsWith('src/')).length).toBeGreaterThan(300);
});
