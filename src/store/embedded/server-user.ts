/**
 * PostgreSQL refuses to run as root, so a Postern that is root runs it as a user that no other program runs as: a
 * number that has no name on this machine. Whoever runs as the same user could read the database's files, signal its
 * processes and connect to its socket.
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

/**
 * User ids that neither Debian nor systemd gives to anybody (https://systemd.io/UIDS-GIDS/); under 65536, as containers
 * need.
 */
const FIRST_UID = 60_578;
const UIDS = 606;

/** Users that many programs may run as; earlier versions ran the server as one of them. */
const SHARED_NAMES = ['postgres', 'nobody'] as const;

/** Users that exist everywhere, for a program that needs a name for its user. */
const NAMED = ['nobody', 'daemon', 'bin', 'postgres'] as const;

/**
 * Returns the user that the server runs as; undefined = as this process.
 * @param cluster a directory that may exist already: then its owner must run it, unless that is a shared user
 */
export async function serverUser(cluster: string, dataDir: string): Promise<ServerUser | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  const owner = await stat(cluster).catch(() => undefined);
  if (owner === undefined || owner.uid === 0 || (await isShared(owner.uid, dataDir))) return ownUser(dataDir);
  return { uid: owner.uid, gid: owner.gid };
}

/** Returns the owner of a cluster that is to be taken over; undefined = there is none, or its owner must run it. */
export async function sharedOwner(cluster: string, dataDir: string): Promise<ServerUser | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  const owner = await stat(cluster).catch(() => undefined);
  return owner !== undefined && (await isShared(owner.uid, dataDir)) ? { uid: owner.uid, gid: owner.gid } : undefined;
}

/** A Postern that is not root may run as such a user itself. Then the data-dir is its, and the cluster stays so. */
async function isShared(uid: number, dataDir: string): Promise<boolean> {
  const written = (await lstat(join(dataDir, 'database.url')).catch(() => undefined)) ?? (await lstat(dataDir));
  if (written.uid !== 0) return false;
  for (const name of SHARED_NAMES) if ((await namedUser(name))?.uid === uid) return true;
  return false;
}

/** The same for every start with the data-dir, also for two at once, as long as nobody gives the number a name. */
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

/** Returns some user that has a name, is not root and may be shared. */
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
 * Asks the system itself, so that groups, access lists and mounts all count. True for every test when the server runs
 * as this process.
 */
export async function serverCan(
  user: ServerUser | undefined,
  test: '-r' | '-x',
  paths: readonly string[],
): Promise<boolean> {
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
