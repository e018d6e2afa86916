/** Changes the owner of a cluster's files, while the former owner may still modify them. Only root can do this. */

import { constants } from 'node:fs';
import { lstat, open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { reasonOf, systemCode } from '../../domain/errors.ts';
import { EmbeddedError } from './error.ts';
import type { ServerUser } from './server-user.ts';

/** Does not follow links and does not wait for the other end of a pipe. */
const FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/**
 * Changes the owner of a directory and of all files in it that belong to `from`. The directory itself is last, so an
 * interrupted start repeats the work. A link never causes a file of another user to change its owner. Rejects with an
 * EmbeddedError.
 */
export async function giveTree(directory: string, from: number, to: ServerUser): Promise<void> {
  try {
    for (const entry of await readdir(directory, { withFileTypes: true })) {
      const path = join(directory, entry.name);
      await (entry.isDirectory() ? giveTree(path, from, to) : give(path, from, to));
    }
    await give(directory, from, to);
  } catch (error) {
    if (error instanceof EmbeddedError) throw error;
    throw new EmbeddedError(
      `${directory} cannot be given to user ${to.uid}, which PostgreSQL runs as (${reasonOf(error)}). Change its owner and that of all files in it, or set database.url.`,
    );
  }
}

async function give(path: string, from: number, to: ServerUser): Promise<void> {
  const found = await lstat(path);
  if (found.uid !== from) return;
  // The server does not need to own links and sockets.
  if (!(found.isFile() || found.isDirectory())) return;
  const handle = await open(path, FLAGS).catch((error: unknown) => {
    // The owner replaced it by a link.
    if (systemCode(error) === 'ELOOP') return undefined;
    throw error;
  });
  if (handle === undefined) return;
  try {
    // The name may belong to another file by now. The open file stays the same.
    const stats = await handle.stat();
    const elsewhere = stats.isFile() && stats.nlink > 1;
    if (stats.uid === from && !elsewhere) await handle.chown(to.uid, to.gid);
  } finally {
    await handle.close();
  }
}
