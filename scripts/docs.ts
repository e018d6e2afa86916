/** `npm run docs`: writes the reference of settings, commands and errors. */

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { referencePages } from './lib/reference/pages.ts';

const ROOT = join(import.meta.dirname, '..');

for (const [path, text] of referencePages()) {
  await writeFile(join(ROOT, path), text);
  console.log(path);
}
