/**
 * `node scripts/wording.ts [path prefix]...`: fails if comments have a phrase that this project's English avoids, or if
 * two files of src export the same name. Default: the comments of src, client and console/src.
 */

import { readFile } from 'node:fs/promises';
import { sourceFiles } from './imports.ts';
import { sharedNames } from './lib/exported-names.ts';
import { findPhrases } from './lib/wording.ts';

const ROOT = new URL('..', import.meta.url).pathname;
const given = process.argv.slice(2);
const prefixes = given.length === 0 ? ['src/', 'client/', 'console/src/'] : given;
const files = await sourceFiles(ROOT);
const sources = files.filter(({ path }) => path.startsWith('src/'));
const chosen = files.filter(({ path }) => prefixes.some((prefix) => path.startsWith(prefix)));
const documents = await Promise.all(
  prefixes.filter((path) => path.endsWith('.md')).map(async (path) => ({ path, text: await readFile(path, 'utf8') })),
);
const phrases = [...chosen, ...documents].flatMap(findPhrases);
for (const { file, line, text, advice } of phrases) console.error(`${file}:${line}: "${text}": ${advice}.`);
const names = sharedNames(sources);
for (const { name, files: paths } of names) {
  console.error(`${name} is exported by ${paths.join(' and ')}: give each meaning a name of its own, or keep one.`);
}
console.log(`${chosen.length} files, ${phrases.length} phrases to avoid, ${names.length} names with two declarations.`);
process.exitCode = phrases.length + names.length === 0 ? 0 : 1;
