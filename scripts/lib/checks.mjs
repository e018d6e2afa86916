/** The stages of `npm run check` and `npm test`. All of them run, so that one run shows everything that is wrong. */

import { randomInt } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from './child.mjs';
import { buildConsole } from './console.mjs';
import { PART_NAMES } from './part-names.mjs';
import { BIN, ROOT } from './root.mjs';
import { processorSeconds, reportOf, summaryOf } from './test-report.mjs';
import { openRun } from './test-run.mjs';

const tool = (name) => join(BIN, name);
const RESULTS = join(ROOT, 'bench/results');
/** What Node compiled, for the next worker and the servers that tests start. */
const COMPILED = join(ROOT, 'node_modules/.cache/test-compile-cache');

/** @type {[name: string, run: (node: string) => Promise<number>][]} */
const CHECKS = [
  ['Biome: format and lint', () => run(tool('biome'), ['check', '--error-on-warnings', '.'])],
  ['TypeScript: types', () => checkTypes('.')],
  ['TypeScript: the client in a browser', () => checkTypes('client')],
  ['TypeScript: the console', () => checkTypes('console')],
  ['Imports: direction', (node) => run(node, ['scripts/imports.ts'])],
  ['Words: phrases to avoid, and exported names with two meanings', (node) => run(node, ['scripts/wording.ts'])],
];

/** @param {string} project the folder of its tsconfig.json */
function checkTypes(project) {
  const known = join(ROOT, 'node_modules/.cache/tsc', project, 'tsbuildinfo');
  return run(tool('tsc'), ['--noEmit', '--project', project, '--incremental', '--tsBuildInfoFile', known]);
}

export async function runCheck(node) {
  const failed = [];
  for (const [name, check] of CHECKS) {
    console.log(`\n── ${name}`);
    const code = await check(node);
    if (wasInterrupted(code)) return code;
    if (code !== 0) failed.push(name);
  }
  report(failed);
  return failed.length === 0 ? 0 : 1;
}

export function runFormat() {
  return run(tool('biome'), ['check', '--write', '.']);
}

/**
 * Runs the checks, prepares the machine and runs the tests. `args` choose: the name of a part (test/parts.ts), a path, or an option of
 * vitest. With any of them the checks are left out.
 *
 * @param {string[]} args
 */
export async function runTests(node, args) {
  const spent = startClock();
  const checked = args.length === 0 ? await runCheck(node) : 0;
  if (wasInterrupted(checked)) return checked;
  for (const [name, script] of SETUP) {
    console.log(`\n── ${name}`);
    // A test that needs a part which is missing fails, and names it.
    const code = await run(node, [script]);
    if (wasInterrupted(code)) return code;
  }
  console.log('\n── Vite: the console');
  const built = await buildConsole(node);
  if (built !== 0) return wasInterrupted(built) ? built : 1;
  console.log('\n── Vitest: tests');
  const testRun = await openRun();
  try {
    const code = await runVitest(node, testRun.folder, args);
    console.log(`In all: ${spent()}`);
    return code === 0 ? checked : code;
  } finally {
    await testRun.close();
  }
}

/** Scripts that bring what the tests need, before several of them look for one thing at once. */
const SETUP = [
  ['Envoy: the binary', 'scripts/fetch-envoy.ts'],
  ['Directories: the servers', 'scripts/install-directories.ts'],
  ['Helm: the tool and the schemas', 'scripts/fetch-tools.ts'],
];

async function runVitest(node, folder, args) {
  const spent = startClock();
  const file = join(folder, 'results.json');
  const seed = process.env.TEST_SEED ?? String(randomInt(2 ** 31));
  const env = { TMPDIR: folder, TEST_RESULTS_FILE: file, TEST_SEED: seed, NODE_COMPILE_CACHE: COMPILED };
  const words = args.flatMap((arg) => (PART_NAMES.includes(arg) ? ['--project', arg] : [arg]));
  const code = await run(node, [tool('vitest'), 'run', ...words], { env });
  const text = await readFile(file, 'utf8').catch(() => undefined);
  const results = text === undefined ? undefined : JSON.parse(text);
  if (results !== undefined) {
    await mkdir(RESULTS, { recursive: true });
    await writeFile(join(RESULTS, 'tests.json'), text);
    console.log(reportOf(results));
  }
  console.log(`\nThe tests: ${spent()}. TEST_SEED=${seed} repeats their random choices.`);
  const line = summaryOf(results);
  console.log(line);
  if (process.env.TEST_SUMMARY_FILE) await writeFile(process.env.TEST_SUMMARY_FILE, `${line}\n`);
  return code;
}

function startClock() {
  const startedMs = performance.now();
  const startedProcessor = processorSeconds();
  return () => {
    const wall = ((performance.now() - startedMs) / 1000).toFixed(0);
    return `${wall} s, ${(processorSeconds() - startedProcessor).toFixed(0)} s of processor time`;
  };
}

/** A stage that a signal ended is the last. */
function wasInterrupted(code) {
  return code > 128;
}

function report(failed) {
  console.log(
    failed.length === 0
      ? '\nAll checks passed.'
      : `\nFailed: ${failed.join('; ')}. "npm run format" puts formatting right.`,
  );
}
