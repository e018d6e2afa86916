/**
 * Gives the files of a cluster to another user, although their owner may still change them meanwhile. For root alone.
 */

import { constants } from 'node:fs';
import { lstat, open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { EmbeddedError, reason, systemCode } from './error.ts';
import type { ServerUser } from './server-user.ts';

/** Neither follows a link nor waits for the other end of a pipe. */
const FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/**
 * Gives a directory and everything in it that belongs to `from` to `to`, the directory itself last: a start that is cut
 * short begins again. A link that the owner put there never makes another user's file change hands. Rejects with an
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
      `${directory} cannot be given to user ${to.uid}, which PostgreSQL runs as (${reason(error)}). Change its owner and that of all files in it, or set database.url.`,
    );
  }
}

async function give(path: string, from: number, to: ServerUser): Promise<void> {
  const found = await lstat(path);
  if (found.uid !== from) return;
  // The server needs to own no link and no socket.
  if (!(found.isFile() || found.isDirectory())) return;
  const handle = await open(path, FLAGS).catch((error: unknown) => {
    // It has become a link.
    if (systemCode(error) === 'ELOOP') return undefined;
    throw error;
  });
  if (handle === undefined) return;
  try {
    // A name may mean another file by now; an open file stays the same.
    const stats = await handle.stat();
    const elsewhere = stats.isFile() && stats.nlink > 1;
    if (stats.uid === from && !elsewhere) await handle.chown(to.uid, to.gid);
  } finally {
    await handle.close();
  }
}
