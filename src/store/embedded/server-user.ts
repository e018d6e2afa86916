/** PostgreSQL refuses to run as root, so a Postern that is root runs it as somebody else, who must be able to reach its files. */

import { execFile } from 'node:child_process';
import { stat } from 'node:fs/promises';
import { promisify } from 'node:util';
import { EmbeddedError } from './error.ts';

const run = promisify(execFile);

export interface ServerUser {
  readonly uid: number;
  readonly gid: number;
}

const CANDIDATES = ['postgres', 'nobody'] as const;

/**
 * Whom the server runs as; undefined = as this process.
 * @param cluster a data directory that may exist already: then its owner is who must run it
 */
export async function serverUser(cluster: string): Promise<ServerUser | undefined> {
  if (process.getuid?.() !== 0) {
    return undefined;
  }
  const owner = await stat(cluster).catch(() => undefined);
  if (owner !== undefined && owner.uid !== 0) {
    return { uid: owner.uid, gid: owner.gid };
  }
  for (const name of CANDIDATES) {
    try {
      const [uid, gid] = await Promise.all([run('id', ['-u', name]), run('id', ['-g', name])]);
      return { uid: Number(uid.stdout), gid: Number(gid.stdout) };
    } catch {
      // No such user here: the next one.
    }
  }
  throw new EmbeddedError(
    `PostgreSQL does not run as root, and there is no user ${CANDIDATES.join(' or ')} to run it as. Start Postern as another user, or set database.url.`,
  );
}

/** Asks the system itself, so that groups, access lists and mounts all count. True for every test when the server runs as this process. */
export async function serverCan(user: ServerUser | undefined, test: '-r' | '-x', paths: readonly string[]): Promise<boolean> {
  if (user === undefined) {
    return true;
  }
  try {
    await run('/bin/sh', ['-c', 'op=$1; shift; for path do test "$op" "$path" || exit 1; done', 'sh', test, ...paths], {
      cwd: '/',
      ...user,
    });
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 1) {
      return false;
    }
    throw new EmbeddedError(
      `PostgreSQL does not run as root, and this process may not start it as user ${user.uid}. Start Postern as another user, or set database.url.`,
    );
  }
}
