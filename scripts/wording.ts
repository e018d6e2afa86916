/**
 * Lists the phrases that this project's English avoids: `node scripts/wording.ts [path prefix]...`. Default: the
 * comments of src.
 */

import { readFile } from 'node:fs/promises';
import { sourceFiles } from './imports.ts';
import { findPhrases } from './lib/wording.ts';

const ROOT = new URL('..', import.meta.url).pathname;
const prefixes = process.argv.slice(2);
const sources = (await sourceFiles(ROOT)).filter(({ path }) =>
  prefixes.length === 0 ? path.startsWith('src/') : prefixes.some((prefix) => path.startsWith(prefix)),
);
const documents = await Promise.all(
  prefixes.filter((path) => path.endsWith('.md')).map(async (path) => ({ path, text: await readFile(path, 'utf8') })),
);
const findings = [...sources, ...documents].flatMap(findPhrases);
for (const { file, line, text, advice } of findings) console.log(`${file}:${line}: "${text}": ${advice}.`);
console.log(`${findings.length} phrases.`);
