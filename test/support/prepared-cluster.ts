/** Embedded databases that need not be created: copies of a migrated one. */

import { execFile } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { inject } from 'vitest';

/**
 * Creates a data-dir with the cluster of an embedded server that has been migrated and has not served yet. A server that starts on it
 * does what is left of a first start: it creates its keys and the first administrator.
 */
export async function prepareDataDir(dataDir: string): Promise<string> {
  await mkdir(dataDir, { mode: 0o711 });
  await promisify(execFile)('cp', ['-a', inject('preparedCluster'), join(dataDir, 'postgres')]);
  return dataDir;
}
