/** The command line: `postern COMMAND`. */

import { enableCompileCache } from 'node:module';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';

// The compile cache is beside the dependencies, so only users that may change the program may write it. A read-only
// installation works without it.
enableCompileCache(join(import.meta.dirname, '../node_modules/.cache/postern'));
// Lets the heap grow by less between full collections than V8 does by default. Each call leaves garbage that survived a
// minor collection, such as HTTP/2 streams. With V8's default, the heap of a server becomes several times as large as
// its live objects.
setFlagsFromString('--heap-growing-percent=40');
// A reader that closes its end (`| head`) must not stop a server.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
const { main } = await import('./cli/main.ts');

// Exits at once. The command has ended its own work, and a connection that a peer holds open must not delay the exit.
process.exit(await main(process.argv.slice(2)));
