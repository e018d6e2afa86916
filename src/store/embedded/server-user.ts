/**
 * PostgreSQL does not run as root. Postern as root therefore runs it as a user that no other program uses: an id
 * without a name on this machine. A program with the same user could read the database's files, signal its processes
 * and connect to its socket.
 */

import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { lstat, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { EmbeddedError } from './error.ts';

const run = promisify(execFile);

export interface ServerUser {
  readonly uid: number;
  readonly gid: number;
}

/** User ids that Debian and systemd do not assign (https://systemd.io/UIDS-GIDS/). Containers need ids below 65536. */
const FIRST_UID = 60_578;
const UIDS = 606;

/** Users that other programs may use as well. Earlier versions ran the server as one of them. */
const SHARED_NAMES = ['postgres', 'nobody'] as const;

/** Users that exist on most machines, for initdb, which requires a user with a name. */
const NAMED = ['nobody', 'daemon', 'bin', 'postgres'] as const;

/**
 * Returns the user that the server runs as; undefined = the user of this process.
 * @param cluster directory whose owner must run the server, if it exists and the owner is not a shared user
 */
export async function serverUser(cluster: string, dataDir: string): Promise<ServerUser | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  const owner = await stat(cluster).catch(() => undefined);
  if (owner === undefined || owner.uid === 0 || (await isShared(owner.uid, dataDir))) return ownUser(dataDir);
  return { uid: owner.uid, gid: owner.gid };
}

/** Returns the owner of a cluster that must be taken over; undefined = no cluster, or no takeover. */
export async function sharedOwner(cluster: string, dataDir: string): Promise<ServerUser | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  const owner = await stat(cluster).catch(() => undefined);
  return owner !== undefined && (await isShared(owner.uid, dataDir)) ? { uid: owner.uid, gid: owner.gid } : undefined;
}

/** Postern itself may run as a shared user. The data-dir then belongs to that user, and the cluster keeps its owner. */
async function isShared(uid: number, dataDir: string): Promise<boolean> {
  const written = (await lstat(join(dataDir, 'database.url')).catch(() => undefined)) ?? (await lstat(dataDir));
  if (written.uid !== 0) return false;
  for (const name of SHARED_NAMES) if ((await namedUser(name))?.uid === uid) return true;
  return false;
}

/** Returns the same user for every start with the data-dir, unless the id gets a name. */
export async function ownUser(dataDir: string): Promise<ServerUser> {
  const from = createHash('sha256').update(dataDir).digest().readUInt32BE();
  for (let i = 0; i < UIDS; i++) {
    const uid = FIRST_UID + ((from + i) % UIDS);
    if (!(await hasName(uid))) return { uid, gid: uid };
  }
  throw new EmbeddedError(
    `PostgreSQL does not run as root, and each of the user ids ${FIRST_UID} to ${FIRST_UID + UIDS - 1} has a name. Start Postern as another user, or set database.url.`,
  );
}

/** Returns a user with a name that is not root. Other programs may use it. */
export async function anyNamedUser(): Promise<ServerUser> {
  for (const name of NAMED) {
    const user = await namedUser(name);
    if (user !== undefined && user.uid !== 0) return user;
  }
  throw new EmbeddedError(
    `PostgreSQL does not run as root, and there is no user ${NAMED.join(' or ')} that can create a database. Start Postern as another user, or set database.url.`,
  );
}

async function namedUser(name: string): Promise<ServerUser | undefined> {
  try {
    const [uid, gid] = await Promise.all([run('id', ['-u', name]), run('id', ['-g', name])]);
    return { uid: Number(uid.stdout), gid: Number(gid.stdout) };
  } catch {
    return undefined;
  }
}

function hasName(uid: number): Promise<boolean> {
  return run('id', ['-nu', String(uid)]).then(
    () => true,
    () => false,
  );
}

/**
 * Runs `test` as the server's user, so that groups, access lists and mounts count. Always true if the server runs as
 * the user of this process.
 */
export async function serverCan(
  user: ServerUser | undefined,
  test: '-r' | '-x',
  paths: readonly string[],
): Promise<boolean> {
  if (user === undefined) return true;
  try {
    await run('/bin/sh', ['-c', 'op=$1; shift; for path do test "$op" "$path" || exit 1; done', 'sh', test, ...paths], {
      cwd: '/',
      ...user,
    });
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 1) return false;
    throw new EmbeddedError(
      `PostgreSQL does not run as root, and this process may not start it as user ${user.uid}. Start Postern as another user, or set database.url.`,
    );
  }
}
