/** PostgreSQL servers as the machine sees them: found by their files, held still, killed. */

import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { readPidFile, signal, whoIs } from '../../../src/store/embedded/processes.ts';
import { eventually } from './eventually.ts';
import { childrenOf } from './processes.ts';

/** The main process of the embedded server of a data-dir; undefined when none runs. */
export async function postmasterOf(dataDir: string): Promise<number | undefined> {
  const cluster = join(dataDir, 'postgres');
  const recorded = await readPidFile(cluster).catch(() => undefined);
  return recorded !== undefined && (await whoIs(recorded.pid, cluster)) === 'server' ? recorded.pid : undefined;
}

/** Stops every process of a server for a moment, as a hung machine would: connections stay open and nothing answers. */
export async function freeze(postmaster: number): Promise<void> {
  // The main process first, so that it makes no more of them.
  signal(postmaster, 'SIGSTOP');
  for (const pid of await childrenOf(postmaster)) signal(pid, 'SIGSTOP');
}

export async function thaw(postmaster: number): Promise<void> {
  for (const pid of [...(await childrenOf(postmaster)), postmaster]) signal(pid, 'SIGCONT');
}

/** Ends every embedded server with its data in a folder of this folder. */
export async function endPostgres(folder: string): Promise<void> {
  for (const entry of await readdir(folder)) {
    const dataDir = join(folder, entry);
    const pid = await postmasterOf(dataDir);
    if (pid === undefined) continue;
    await thaw(pid);
    signal(pid, 'SIGQUIT');
    await eventually('the embedded PostgreSQL ends', async () => (await postmasterOf(dataDir)) === undefined).catch(
      () => signal(pid, 'SIGKILL'),
    );
  }
}
