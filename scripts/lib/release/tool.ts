/** The tools that a release is made with. */

import { execFile } from 'node:child_process';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';

export const ROOT = join(import.meta.dirname, '../../..');
export const BIN = join(ROOT, 'node_modules/.bin');
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;
const run = promisify(execFile);

/**
 * Runs a command, such as npm, with the Node that runs this process.
 * @returns its standard output
 * @throws Error with everything that it wrote
 */
export async function tool(command: string, args: readonly string[], cwd: string): Promise<string> {
  const env = {
    ...process.env,
    // The lock file holds the digest of every package, so a copy in npm's cache is as good as a download.
    npm_config_prefer_offline: 'true',
    PATH: `${dirname(process.execPath)}${delimiter}${BIN}${delimiter}${process.env['PATH'] ?? ''}`,
  };
  try {
    return (await run(command, [...args], { cwd, env, maxBuffer: MAX_OUTPUT_BYTES })).stdout;
  } catch (error) {
    const written = ['stdout', 'stderr'].map((name) =>
      error instanceof Error ? String(Reflect.get(error, name) ?? '') : '',
    );
    throw new Error(`${command} ${args[0] ?? ''} failed: ${written.join('\n').trim()}`, { cause: error });
  }
}
