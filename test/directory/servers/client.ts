/** For clients of the tests themselves. */

import { readFile } from 'node:fs/promises';
import type { DirectoryServer } from './server.ts';

export async function tlsFor(server: DirectoryServer): Promise<{ readonly ca: string }> {
  return { ca: await readFile(server.caFile, 'utf8') };
}
