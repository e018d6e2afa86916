/** The command line: `postern COMMAND`. */

import { enableCompileCache } from 'node:module';
import { join } from 'node:path';

// Compiled code is kept beside the dependencies, where only who may change the program may write. A read-only installation does without.
enableCompileCache(join(import.meta.dirname, '../node_modules/.cache/postern'));
const { main } = await import('./cli/main.ts');

// At once: all that the command began it has ended, and a connection that a peer holds open is no reason to stay.
process.exit(await main(process.argv.slice(2)));
