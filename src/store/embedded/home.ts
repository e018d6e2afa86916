/**
 * The home of an embedded database: `data-dir` itself if the server's user can reach it, otherwise (for root with a
 * private folder) a separate folder that a file in `data-dir` names.
 *
 * - `data-dir/secret-key`, `database.url`: only for Postern
 * - `data-dir/start.lock`: held by a Postern while it starts the server
 * - `<home>/postgres`, `postgres.log`, `run`: the cluster, the server's log, its socket
 */

import { createHash } from 'node:crypto';
import { access, chmod, constants, lchown, lstat, mkdir, mkdtemp, readdir, realpath, rm } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { reasonOf, systemCode } from '../../domain/errors.ts';
import { EmbeddedError, NoEmbeddedDatabaseError } from './error.ts';
import { makeFolders, readIfPresent, readOrCreate, replaceFile } from './files.ts';
import { giveTree } from './ownership.ts';
import { readPidFile, whoIs } from './processes.ts';
import { type ServerUser, serverCan, serverUser, sharedOwner } from './server-user.ts';

export interface Home {
  readonly dataDir: string;
  readonly directory: string;
  readonly cluster: string;
  readonly logFile: string;
  /** A private folder for the Unix socket. Its path is short enough for a socket. */
  readonly socketDir: string;
  /** The user that the server runs as; undefined = the user of this process. */
  readonly user: ServerUser | undefined;
}

/** The file of `data-dir` that names the home, if that is elsewhere. */
export const LOCATION = 'cluster-location';
/** The file of such a home that names `data-dir`. */
export const ORIGIN = 'data-dir';
/** Folders for homes of root. The second is used if the first is not writable. */
export const BASES = ['/var/lib/postern', '/var/tmp/postern'] as const;
/** `sun_path` has 104 bytes on macOS, 108 on Linux, and the server adds `/.s.PGSQL.5432`. */
const MAX_SOCKET_DIR_BYTES = 85;

/**
 * Finds or creates the home of a data-dir.
 * @param create false: rejects with a NoEmbeddedDatabaseError, and creates nothing, if there is no cluster
 */
export async function openHome(givenDataDir: string, log: (message: string) => void, create: boolean): Promise<Home> {
  if (!create) await requireCluster(givenDataDir);
  const dataDir = await openDataDir(givenDataDir);
  const directory = await locate(dataDir, log);
  if (directory !== dataDir) {
    log(`the data is in two places: ${dataDir} and ${directory}; "postern remove-data" removes both`);
  }
  const cluster = join(directory, 'postgres');
  // Checked first, because another start may take the cluster over and start the server in between.
  const running = await isRunning(cluster);
  const former = await sharedOwner(cluster, dataDir);
  const user = running && former !== undefined ? former : await serverUser(cluster, dataDir);
  const socketDir = await openSocketDir(socketDirOf(directory), user, former);
  // Last, because the owner of the cluster shows that the takeover is complete.
  if (former !== undefined && user !== undefined) await takeOver(cluster, former, user, log);
  return { dataDir, directory, cluster, logFile: join(directory, 'postgres.log'), socketDir, user };
}

async function takeOver(
  cluster: string,
  former: ServerUser,
  user: ServerUser,
  log: (message: string) => void,
): Promise<void> {
  if (user.uid === former.uid) {
    log(
      `the PostgreSQL server runs as user ${former.uid}, which other programs may use too; after its next start, it runs as a user of its own`,
    );
    return;
  }
  log(`changing the owner of ${cluster} to user ${user.uid}: other programs may run as its owner, user ${former.uid}`);
  await giveTree(cluster, former.uid, user);
}

async function requireCluster(given: string): Promise<void> {
  const directory = (await readIfPresent(join(given, LOCATION)).catch(() => undefined))?.trim() ?? given;
  const entries = await readdir(join(directory, 'postgres')).catch((error: unknown) =>
    // Opening the database reports the error.
    ['ENOENT', 'ENOTDIR'].includes(systemCode(error) ?? '') ? [] : ['unreadable'],
  );
  if (entries.length === 0) throw new NoEmbeddedDatabaseError(`There is no database in ${resolve(given)}.`);
}

async function openDataDir(given: string): Promise<string> {
  try {
    await makeFolders(given, 0o711);
    const dataDir = await realpath(given);
    await access(dataDir, constants.R_OK | constants.W_OK | constants.X_OK);
    return dataDir;
  } catch (error) {
    throw new EmbeddedError(
      `The data directory ${given} cannot be used (${reasonOf(error)}). Give this user a folder that it may write, with data-dir, or set database.url.`,
    );
  }
}

async function locate(dataDir: string, log: (message: string) => void): Promise<string> {
  const noted = (await readIfPresent(join(dataDir, LOCATION)))?.trim();
  if (noted !== undefined) return checkNoted(dataDir, noted);
  const user = await serverUser(join(dataDir, 'postgres'), dataDir);
  if (await serverCan(user, '-x', [dataDir])) return dataDir;
  const made = await createHomeElsewhere(dataDir);
  const agreed = (await readOrCreate(join(dataDir, LOCATION), () => `${made}\n`)).trim();
  if (agreed !== made) {
    await rm(made, { recursive: true });
    return checkNoted(dataDir, agreed);
  }
  log(`keeping the database in ${made}: PostgreSQL does not run as root, and no other user can reach ${dataDir}`);
  return made;
}

async function checkNoted(dataDir: string, directory: string): Promise<string> {
  if ((await lstat(directory).catch(() => undefined))?.isDirectory() !== true) {
    throw new EmbeddedError(
      `The database of ${dataDir} is kept in ${directory}, and that folder no longer exists. Restore it, or delete ${join(dataDir, LOCATION)} to begin with an empty database.`,
    );
  }
  return directory;
}

async function createHomeElsewhere(dataDir: string): Promise<string> {
  for (const base of BASES) {
    try {
      await makeFolders(base, 0o755);
      const { uid, mode } = await lstat(base);
      // Another user must not be able to replace the folder.
      if (uid === 0 && (mode & 0o022) === 0) {
        const home = await mkdtemp(join(base, `${basename(dataDir).replaceAll(/[^\w-]/g, '')}-`));
        await chmod(home, 0o711);
        // Shows an operator which data-dir the folder belongs to.
        await replaceFile(join(home, ORIGIN), `${dataDir}\n`);
        return home;
      }
    } catch {
      // Not writable: try the next one.
    }
  }
  throw new EmbeddedError(
    `PostgreSQL does not run as root, and no other user can reach ${dataDir}, and neither ${BASES.join(' nor ')} can be created. Start Postern as another user, choose another data-dir, or set database.url.`,
  );
}

async function isRunning(cluster: string): Promise<boolean> {
  const recorded = await readPidFile(cluster);
  return recorded !== undefined && (await whoIs(recorded.pid, cluster)) === 'server';
}

/** Returns the folder of the socket of a home. */
export function socketDirOf(directory: string): string {
  const inside = join(directory, 'run');
  // The server splits the setting at commas, and connection strings have special characters.
  if (Buffer.byteLength(inside) <= MAX_SOCKET_DIR_BYTES && /^[\w./-]+$/.test(inside)) return inside;
  const name = createHash('sha256').update(directory).digest('hex').slice(0, 16);
  return `/tmp/postern-${name}`;
}

/** @param former the user that owned the cluster before the takeover */
async function openSocketDir(
  path: string,
  user: ServerUser | undefined,
  former: ServerUser | undefined,
): Promise<string> {
  const owner = user ?? { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
  // The folder changes its owner and is not created again, because the server of another start may already use it.
  if (former !== undefined && user !== undefined && (await lstat(path).catch(() => undefined))?.uid === former.uid) {
    await giveTree(path, former.uid, user);
  }
  try {
    await mkdir(path, { mode: 0o700 });
    await lchown(path, owner.uid, owner.gid);
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') {
      throw new EmbeddedError(`The folder ${path} for the database's socket cannot be created (${reasonOf(error)}).`);
    }
  }
  const found = await lstat(path);
  if (found.isDirectory() && found.uid === 0 && owner.uid !== 0 && process.getuid?.() === 0) {
    // A start was killed after it created the folder and before it changed the owner.
    await lchown(path, owner.uid, owner.gid);
  } else if (!found.isDirectory() || found.uid !== owner.uid || (found.mode & 0o077) !== 0) {
    throw new EmbeddedError(
      `${path}, the folder for the database's socket, belongs to another user or is accessible to others. Remove it and start again.`,
    );
  }
  return path;
}
