/**
 * `npm run test:deploy [NAME…]`: checks everything that installs, meshes and watches Postern, with the real tools, and
 * prints what was checked with which tool and version, and what could not be checked here.
 */

import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Check } from './lib/deploy-check.ts';
import { type Group, runChecks } from './lib/deploy-report.ts';

const FOLDER = join(import.meta.dirname, 'deploy');

/** @param names the files to take, without `.ts`; none = all */
async function groupsOf(names: readonly string[]): Promise<Group[]> {
  const all = (await readdir(FOLDER))
    .filter((file) => file.endsWith('.ts'))
    .map((file) => file.replace(/\.ts$/, ''))
    .sort();
  const unknown = names.filter((name) => !all.includes(name));
  if (unknown.length > 0)
    throw new Error(`There are no checks named ${unknown.join(', ')}; there are ${all.join(', ')}.`);
  const groups: Group[] = [];
  for (const name of names.length > 0 ? names : all) {
    const { checks }: { checks: readonly Check[] } = await import(pathToFileURL(join(FOLDER, `${name}.ts`)).href);
    groups.push({ name, checks });
  }
  return groups;
}

try {
  const holds = await runChecks(await groupsOf(process.argv.slice(2)), process.env['CI'] === 'true', (line) =>
    console.log(line),
  );
  process.exitCode = holds ? 0 : 1;
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
