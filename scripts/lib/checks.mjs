/** The stages of `npm run check` and `npm test`. All of them run, so that one run shows everything that is wrong. */

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from './child.mjs';
import { buildConsole } from './console.mjs';
import { BIN } from './root.mjs';

const tool = (name) => join(BIN, name);

/** @type {[name: string, run: (node: string) => Promise<number>][]} */
const CHECKS = [
  ['Biome: format and lint', () => run(tool('biome'), ['check', '--error-on-warnings', '.'])],
  ['TypeScript: types', () => run(tool('tsc'), ['--noEmit'])],
  ['TypeScript: the client in a browser', () => run(tool('tsc'), ['--noEmit', '--project', 'client'])],
  ['TypeScript: the console', () => run(tool('tsc'), ['--noEmit', '--project', 'console'])],
  ['Imports: direction', (node) => run(node, ['scripts/imports.ts'])],
];

export async function runCheck(node) {
  const failed = [];
  for (const [name, check] of CHECKS) {
    console.log(`\n── ${name}`);
    if ((await check(node)) !== 0) failed.push(name);
  }
  report(failed);
  return failed.length === 0 ? 0 : 1;
}

export function runFormat() {
  return run(tool('biome'), ['check', '--write', '.']);
}

/** @param {string[]} args handed to vitest, to choose files or tests; then the checks are left out */
export async function runTests(node, args) {
  const checked = args.length === 0 ? await runCheck(node) : 0;
  if (args.length === 0) {
    console.log('\n── Envoy: the binary');
    // Without it the tests that need it fail, and say so.
    await run(node, ['scripts/fetch-envoy.ts']);
    console.log('\n── Directories: the servers');
    await run(node, ['scripts/install-directories.ts']);
    console.log('\n── Helm: the tool and the schemas');
    await run(node, ['scripts/fetch-tools.ts']);
  }
  console.log('\n── Vite: the console');
  if ((await buildConsole(node)) !== 0) return 1;
  console.log('\n── Vitest: tests');
  const folder = await mkdtemp(join(tmpdir(), 'postern-results-'));
  try {
    const file = join(folder, 'results.json');
    const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${file}`];
    const code = await run(node, [tool('vitest'), 'run', ...reporters, ...args]);
    const line = summaryOf(await readFile(file, 'utf8').catch(() => ''));
    console.log(line);
    if (process.env.TEST_SUMMARY_FILE) await writeFile(process.env.TEST_SUMMARY_FILE, `${line}\n`);
    return code === 0 ? checked : code;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** `N passed, N failed`: of vitest's JSON results. A file that could not be loaded, or no result at all, is a failure. */
export function summaryOf(json) {
  if (json === '') return '0 passed, 1 failed';
  const results = JSON.parse(json);
  const broken = results.testResults.filter(
    (file) => file.status === 'failed' && !file.assertionResults.some((test) => test.status === 'failed'),
  ).length;
  const skipped = results.numPendingTests + results.numTodoTests;
  const counts = `${results.numPassedTests} passed, ${results.numFailedTests + broken} failed`;
  return skipped > 0 ? `${counts}, ${skipped} skipped` : counts;
}

function report(failed) {
  console.log(
    failed.length === 0 ? '\nAll checks passed.' : `\nFailed: ${failed.join('; ')}. "npm run format" puts formatting right.`,
  );
}
