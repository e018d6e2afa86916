/**
 * `npm run image [FOLDER]`: assembles the layout of the Dockerfile without a container engine, runs it, and keeps it in
 * FOLDER if given.
 */

import { execFile } from 'node:child_process';
import { cp } from 'node:fs/promises';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import { checkedLayout } from './lib/image/check.ts';

const [target] = process.argv.slice(2);
try {
  await using layout = await checkedLayout((line) => console.log(line));
  for (const line of layout.held) console.log(`ok  ${line}`);
  const { stdout } = await promisify(execFile)('du', ['-sm', `${layout.root}/app`]);
  console.log(`The image adds ${stdout.split('\t')[0]} MB to its base.`);
  if (target !== undefined) await cp(`${layout.root}/app`, resolve(target, 'app'), { recursive: true });
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
