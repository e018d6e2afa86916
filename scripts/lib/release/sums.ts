/** Checksums of the files in a folder. */

import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { pipeline } from 'node:stream/promises';

/** From the folder, with slashes, in alphabetical order. */
export async function filesIn(folder: string): Promise<string[]> {
  return (await readdir(folder, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)).split(sep).join('/'))
    .sort();
}

/** As `sha256sum` writes them. */
export async function sumsOf(folder: string, files: readonly string[]): Promise<string> {
  const lines: string[] = [];
  for (const file of files) {
    const hash = createHash('sha256');
    await pipeline(createReadStream(join(folder, file)), hash);
    lines.push(`${hash.digest('hex')}  ${file}\n`);
  }
  return lines.join('');
}
