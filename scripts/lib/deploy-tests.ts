/** Tests that are checks of a deployment as well. */

import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { CheckOutcome } from './deploy-check.ts';

const ROOT = join(import.meta.dirname, '../..');
const run = promisify(execFile);
const TESTS_TIMEOUT_MS = 300_000;

/**
 * Runs the tests of a file or folder.
 * @param env settings of the tests, besides the environment of this process
 */
export async function runTests(path: string, env: NodeJS.ProcessEnv = {}): Promise<CheckOutcome> {
  const args = [join(ROOT, 'node_modules/vitest/vitest.mjs'), 'run', '--reporter=json', path];
  const options = {
    cwd: ROOT,
    env: { ...process.env, ...env },
    timeout: TESTS_TIMEOUT_MS,
    maxBuffer: 64 * 1024 * 1024,
  };
  // A failed test is an exit code; the report is on standard output all the same.
  const { stdout } = await run(process.execPath, args, options).catch((error: unknown) => ({
    stdout: outputOf(error),
  }));
  const report = /\{"numTotalTestSuites".*\}/s.exec(stdout)?.[0];
  if (report === undefined) return { kind: 'failed', says: `the tests in ${path} did not run` };
  const { numPassedTests: passed, numFailedTests: failed }: Readonly<Record<string, unknown>> = JSON.parse(report);
  const says = `${passed} tests passed, ${failed} failed`;
  return failed === 0 && typeof passed === 'number' && passed > 0 ? { kind: 'ok', says } : { kind: 'failed', says };
}

function outputOf(error: unknown): string {
  return error instanceof Error && 'stdout' in error ? String(error.stdout) : '';
}
