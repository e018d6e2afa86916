/**
 * `node scripts/install-directories.ts`: sees to it that the tests find their directory servers, before several of them
 * look for one at once.
 */

import { findParts } from '../test/directory/servers/packages.ts';

const missing = await findParts();
for (const sentence of missing.values()) console.error(sentence);
if (missing.size > 0) process.exitCode = 1;
