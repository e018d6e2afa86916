/** The pages of docs that are written from the code. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { referencePages } from '../../scripts/lib/reference/pages.ts';

const ROOT = join(import.meta.dirname, '../..');

it.each([...referencePages().keys()])('%s is what npm run docs writes from the code', (path) => {
  expect(readFileSync(join(ROOT, path), 'utf8')).toBe(referencePages().get(path));
});
