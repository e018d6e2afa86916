/** ARCHITECTURE.md names files, so that a reader can open them. */

import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

const ROOT = new URL('../..', import.meta.url).pathname;
const text = await readFile(join(ROOT, 'docs/ARCHITECTURE.md'), 'utf8');

/** Paths in backquotes: from the project's folder, or from src. */
const NAMED = /`((?:[\w-]+\/)+[\w.<>-]*)`/g;

describe('the architecture', () => {
  const named = [...new Set([...text.matchAll(NAMED)].map(([, path = '']) => path))].filter(
    (path) => !path.includes('<'),
  );

  it('names many files', () => {
    expect(named.length).toBeGreaterThan(50);
  });

  it.each(named)('names %s, which exists', (path) => {
    expect(existsSync(join(ROOT, path)) || existsSync(join(ROOT, 'src', path))).toBe(true);
  });
});
