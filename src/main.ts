/** The command line: `postern COMMAND`. */

import { enableCompileCache } from 'node:module';
import { join } from 'node:path';

// The compile cache is beside the dependencies, so only users that may change the program may write it. A read-only
// installation works without it.
enableCompileCache(join(import.meta.dirname, '../node_modules/.cache/postern'));
// A reader that closes its end (`| head`) must not stop a server.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
const { main } = await import('./cli/main.ts');

// Exits at once. The command has ended its own work, and a connection that a peer holds open must not delay the exit.
process.exit(await main(process.argv.slice(2)));
