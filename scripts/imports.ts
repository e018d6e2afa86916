/** `node scripts/imports.ts`: fails with a sentence for each import that points the wrong way. */

import { readdir, readFile } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { checkImports, type SourceFile } from './lib/import-rules.ts';

const ROOT = new URL('..', import.meta.url).pathname;

export async function sourceFiles(root: string): Promise<SourceFile[]> {
  const areas = ['src', 'client', 'console/src'].map((area) =>
    readdir(join(root, area), { recursive: true, withFileTypes: true }),
  );
  const names = (await Promise.all(areas))
    .flat()
    .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name));
  return Promise.all(
    names
      .sort()
      .map(async (name) => ({ path: relative(root, name).split(sep).join('/'), text: await readFile(name, 'utf8') })),
  );
}

if (import.meta.main) {
  const files = await sourceFiles(ROOT);
  const violations = checkImports(files);
  for (const { file, line, advice } of violations) console.error(`${file}:${line}: ${advice}`);
  console.log(`${files.length} files, ${violations.length} imports that point the wrong way.`);
  process.exitCode = violations.length === 0 ? 0 : 1;
}
