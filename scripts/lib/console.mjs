/** Builds the console into console/dist. It takes about a second, so it is built anew whenever it is needed. */

import { join } from 'node:path';
import { run } from './child.mjs';
import { BIN, ROOT } from './root.mjs';

/** Returns the exit code. */
export function buildConsole(node) {
  return run(node, [join(BIN, 'vite'), 'build', join(ROOT, 'console'), '--logLevel', 'warn'], {
    // A developer's own setting would build React's larger and slower kind.
    env: { NODE_ENV: 'production' },
  });
}
