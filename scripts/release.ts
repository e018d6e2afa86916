/** `npm run release [FOLDER]`: makes a release in FOLDER (default: dist/release). */

import { join, resolve } from 'node:path';
import { makeRelease, SUMS } from './lib/release/release.ts';
import { ROOT } from './lib/release/tool.ts';

const [target] = process.argv.slice(2);
const folder = target === undefined ? join(ROOT, 'dist/release') : resolve(target);
try {
  const { files, held } = await makeRelease(folder, (line) => console.log(line));
  for (const line of held) console.log(`ok  ${line}`);
  console.log(`${folder}:`);
  for (const file of [...files, SUMS]) console.log(`  ${file}`);
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
