/** `npm run chart`: writes the chart's README, the schema of its values, and the reader of usage. */

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { madeFiles } from './lib/chart/made.ts';

const ROOT = join(import.meta.dirname, '..');

for (const [path, text] of await madeFiles(ROOT)) {
  await writeFile(join(ROOT, path), text);
  console.log(path);
}
