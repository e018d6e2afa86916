/**
 * Removes the files of an embedded database from `data-dir` and from the folder that `cluster-location` names. It
 * removes only files with names that Postern uses, and a folder only if it is empty afterwards. Files of other programs
 * stay.
 */

import { lstat, readdir, realpath, rename, rm, rmdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { reasonOf, systemCode } from '../../domain/errors.ts';
import { EmbeddedError } from './error.ts';
import { readIfPresent } from './files.ts';
import { BASES, LOCATION, ORIGIN, socketDirOf } from './home.ts';
import { helpersOf, readPidFile, whoIs } from './processes.ts';
import { withStartLock } from './start-lock.ts';

interface EmbeddedData {
  readonly dataDir: string;
  /** The folder of the database: `dataDir` itself, or one that `cluster-location` names. */
  readonly directory: string;
}

/** Bounds the wait for the lock of another start. */
const LOCK_MS = 5_000;

const CLUSTER = 'postgres';
/** A partly created or removed cluster. */
const UNFINISHED = /^postgres\.(?:new|removed)-\w+$/;
const PROGRAMS = /^postgresql-\d[\w.-]*$/;
const OF_DATA_DIR = /^(?:(?:secret-key|database\.url|cluster-location)(?:\.[0-9a-f]{12})?|start\.lock(?:-journal)?)$/;
const OF_HOME = /^(?:postgres\.log|run)$/;

/**
 * Returns undefined if there is no embedded database. Rejects with an EmbeddedError if the files may belong to another
 * program.
 */
export async function findEmbeddedData(givenDataDir: string): Promise<EmbeddedData | undefined> {
  const dataDir = await realpath(givenDataDir).catch(() => undefined);
  if (dataDir === undefined || !(await lstat(dataDir)).isDirectory()) return undefined;
  const noted = (await readIfPresent(join(dataDir, LOCATION)))?.trim();
  if (noted !== undefined) {
    await requireOwnHome(dataDir, noted);
    return { dataDir, directory: noted };
  }
  const names = await readdir(dataDir);
  if (!names.includes(CLUSTER))
    return names.some((name) => UNFINISHED.test(name)) ? { dataDir, directory: dataDir } : undefined;
  await requireCluster(join(dataDir, CLUSTER));
  return { dataDir, directory: dataDir };
}

/**
 * Removes the database, its keys and its logs for good, and returns the folders that stay because they hold other
 * files. Rejects with an EmbeddedError, before it removes anything, if a PostgreSQL server runs on the database.
 */
export async function removeEmbeddedData({ dataDir, directory }: EmbeddedData): Promise<readonly string[]> {
  const cluster = join(directory, CLUSTER);
  try {
    return await withStartLock(dataDir, performance.now() + LOCK_MS, async () => {
      await requireStopped(cluster);
      await removeSocketDir(directory, cluster);
      // One atomic step, so that an interrupted removal leaves no damaged cluster and can be repeated.
      await rename(cluster, `${cluster}.removed-${process.pid}`).catch(unlessAbsent);
      await removeNamed(directory, (name) => OF_HOME.test(name) || UNFINISHED.test(name));
      const stays: string[] = [];
      if (directory === dataDir) {
        await removeNamed(directory, (name) => PROGRAMS.test(name));
      } else {
        await removeNamed(directory, (name) => name === ORIGIN);
        if (!(await removeIfEmpty(directory))) stays.push(directory);
        await removeSharedPrograms(dirname(directory));
      }
      await removeNamed(dataDir, (name) => OF_DATA_DIR.test(name));
      if (!(await removeIfEmpty(dataDir))) stays.push(dataDir);
      return stays;
    });
  } catch (error) {
    if (error instanceof EmbeddedError) throw error;
    throw new EmbeddedError(
      `The database of ${dataDir} could not be removed (${reasonOf(error)}). Run the command as the user that Postern runs as.`,
    );
  }
}

/**
 * `cluster-location` may be a copy, or written by another program. The folder must be one that Postern creates, and
 * must name the same `data-dir`.
 */
async function requireOwnHome(dataDir: string, directory: string): Promise<void> {
  const found = await lstat(directory).catch(() => undefined);
  // An earlier removal was interrupted.
  if (found === undefined && isHomeName(directory)) return;
  const origin = (await readIfPresent(join(directory, ORIGIN)).catch(() => undefined))?.trim();
  if (found?.isDirectory() !== true || !isHomeName(directory) || (origin !== undefined && origin !== dataDir)) {
    throw new EmbeddedError(
      `${join(dataDir, LOCATION)} names ${directory}, which is not the folder that Postern made for ${dataDir}. Nothing was removed. Remove the folders by hand if they are not needed.`,
    );
  }
  if (origin !== undefined) return;
  if ((await readdir(directory)).length === 0) return;
  throw new EmbeddedError(
    `${directory} does not name the data directory that it belongs to. Nothing was removed. Remove it and ${dataDir} by hand if they are not needed.`,
  );
}

function isHomeName(directory: string): boolean {
  return BASES.some((base) => dirname(directory) === base) && /^[\w-]*-\w{6}$/.test(basename(directory));
}

async function requireCluster(cluster: string): Promise<void> {
  const names = await readdir(cluster);
  if (names.length > 0 && !names.includes('PG_VERSION')) {
    throw new EmbeddedError(`${cluster} is not a PostgreSQL data directory. Nothing was removed.`);
  }
}

async function requireStopped(cluster: string): Promise<void> {
  const found = await lstat(cluster).catch(() => undefined);
  if (found === undefined) return;
  const recorded = await readPidFile(cluster);
  if (recorded !== undefined && (await whoIs(recorded.pid, cluster)) === 'server') {
    throw new EmbeddedError(
      `PostgreSQL runs on ${cluster} (process ${recorded.pid}). Stop every Postern that uses it. If they were killed, end this process with SIGINT. Nothing was removed.`,
    );
  }
  const helpers = await helpersOf(cluster, { uid: found.uid, gid: found.gid });
  if (helpers.length > 0) {
    throw new EmbeddedError(
      `Processes of a PostgreSQL server still run on ${cluster} (${helpers.join(', ')}). End them. Nothing was removed.`,
    );
  }
}

/** Checks the owner, because a folder of another user may have the name of a socket folder in `/tmp`. */
async function removeSocketDir(directory: string, cluster: string): Promise<void> {
  const path = socketDirOf(directory);
  const [found, owner] = await Promise.all([path, cluster].map((each) => lstat(each).catch(() => undefined)));
  if (found?.isDirectory() === true && found.uid === owner?.uid) await rm(path, { recursive: true, force: true });
}

/** Removes the copy of the programs if no other database of this machine uses it. */
async function removeSharedPrograms(base: string): Promise<void> {
  if ((await readdir(base)).every((name) => PROGRAMS.test(name))) await removeNamed(base, () => true);
  await removeIfEmpty(base);
}

async function removeNamed(directory: string, isOwn: (name: string) => boolean): Promise<void> {
  const names = await readdir(directory).catch((error: unknown) => {
    unlessAbsent(error);
    return [];
  });
  for (const name of names.filter(isOwn)) await rm(join(directory, name), { recursive: true, force: true });
}

/** Removes a folder if it is empty. Returns false if it stays. */
async function removeIfEmpty(directory: string): Promise<boolean> {
  try {
    await rmdir(directory);
    return true;
  } catch (error) {
    const code = systemCode(error) ?? '';
    if (code === 'ENOENT') return true;
    // A mount point stays, and so does a folder whose parent is not writable.
    if (['ENOTEMPTY', 'EEXIST', 'EBUSY', 'EACCES', 'EPERM', 'EROFS'].includes(code)) return false;
    throw error;
  }
}

function unlessAbsent(error: unknown): void {
  if (systemCode(error) !== 'ENOENT') throw error;
}
