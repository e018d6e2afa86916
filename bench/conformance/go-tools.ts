/** Go programs of other projects that conformance runs need. */

import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

/**
 * Builds a program at its version, out of Go's own cache when it was built before.
 * @param program the package's path with its version
 * @returns the binary in `directory`
 * Throws a sentence when Go or the module is missing.
 */
export function installGo(directory: string, program: string): string {
  const [path = ''] = program.split('@');
  const name = path.slice(path.lastIndexOf('/') + 1);
  try {
    execFileSync('go', ['install', program], {
      env: { ...process.env, GOBIN: directory },
      stdio: ['ignore', 'ignore', 'ignore'],
    });
  } catch {
    throw new Error(`${name} could not be built: install Go (https://go.dev/dl), and let it reach its module proxy.`);
  }
  return join(directory, name);
}
