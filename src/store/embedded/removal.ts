/**
 * Removes what an embedded database has put on disk: in `data-dir`, and in the folder that `cluster-location` names. It
 * removes the files that Postern makes, by their names, and a folder only when it is empty afterwards. Files of other
 * programs stay.
 */

import { lstat, readdir, realpath, rename, rm, rmdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { EmbeddedError, reason, systemCode } from './error.ts';
import { readIfThere } from './files.ts';
import { BASES, LOCATION, ORIGIN, socketDirOf } from './home.ts';
import { helpersOf, readPidFile, whoIs } from './processes.ts';
import { withStartLock } from './start-lock.ts';

export interface EmbeddedData {
  readonly dataDir: string;
  /** The folder of the database: `dataDir` itself, or one that `cluster-location` names. */
  readonly directory: string;
}

/** How long another start may hold the lock. */
const LOCK_MS = 5_000;

const CLUSTER = 'postgres';
/** A cluster that is being made or removed. */
const UNFINISHED = /^postgres\.(?:new|removed)-\w+$/;
const PROGRAMS = /^postgresql-\d[\w.-]*$/;
const OF_DATA_DIR = /^(?:(?:secret-key|database\.url|cluster-location)(?:\.[0-9a-f]{12})?|start\.lock(?:-journal)?)$/;
const OF_HOME = /^(?:postgres\.log|run)$/;

/**
 * Returns undefined if there is no embedded database. Rejects with an EmbeddedError if it cannot be told apart from
 * files of others.
 */
export async function findEmbeddedData(givenDataDir: string): Promise<EmbeddedData | undefined> {
  const dataDir = await realpath(givenDataDir).catch(() => undefined);
  if (dataDir === undefined || !(await lstat(dataDir)).isDirectory()) return undefined;
  const noted = (await readIfThere(join(dataDir, LOCATION)))?.trim();
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
      // The cluster goes in one step, so that a removal that is cut short leaves no damaged one, and can be repeated.
      await rename(cluster, `${cluster}.removed-${process.pid}`).catch(unlessAbsent);
      await removeNamed(directory, (name) => OF_HOME.test(name) || UNFINISHED.test(name));
      const stays: string[] = [];
      if (directory === dataDir) {
        await removeNamed(directory, (name) => PROGRAMS.test(name));
      } else {
        await removeNamed(directory, (name) => name === ORIGIN);
        if (!(await isGone(directory))) stays.push(directory);
        await removeSharedPrograms(dirname(directory));
      }
      await removeNamed(dataDir, (name) => OF_DATA_DIR.test(name));
      if (!(await isGone(dataDir))) stays.push(dataDir);
      return stays;
    });
  } catch (error) {
    if (error instanceof EmbeddedError) throw error;
    throw new EmbeddedError(
      `The database of ${dataDir} could not be removed (${reason(error)}). Run the command as the user that Postern runs as.`,
    );
  }
}

/**
 * A note may be copied or written by others. The folder must be where Postern makes one, and must name the same
 * `data-dir`.
 */
async function requireOwnHome(dataDir: string, directory: string): Promise<void> {
  const found = await lstat(directory).catch(() => undefined);
  // An earlier removal was cut short.
  if (found === undefined && isPlace(directory)) return;
  const origin = (await readIfThere(join(directory, ORIGIN)).catch(() => undefined))?.trim();
  if (found?.isDirectory() !== true || !isPlace(directory) || (origin !== undefined && origin !== dataDir)) {
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

function isPlace(directory: string): boolean {
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

/** A folder of another user can have the name of a socket's folder in `/tmp`. */
async function removeSocketDir(directory: string, cluster: string): Promise<void> {
  const path = socketDirOf(directory);
  const [found, owner] = await Promise.all([path, cluster].map((each) => lstat(each).catch(() => undefined)));
  if (found?.isDirectory() === true && found.uid === owner?.uid) await rm(path, { recursive: true, force: true });
}

/** Each database of this machine uses the same copy of the programs. */
async function removeSharedPrograms(base: string): Promise<void> {
  if ((await readdir(base)).every((name) => PROGRAMS.test(name))) await removeNamed(base, () => true);
  await isGone(base);
}

async function removeNamed(directory: string, isOurs: (name: string) => boolean): Promise<void> {
  const names = await readdir(directory).catch((error: unknown) => {
    unlessAbsent(error);
    return [];
  });
  for (const name of names.filter(isOurs)) await rm(join(directory, name), { recursive: true, force: true });
}

/** Removes an empty folder. */
async function isGone(directory: string): Promise<boolean> {
  try {
    await rmdir(directory);
    return true;
  } catch (error) {
    const code = systemCode(error) ?? '';
    if (code === 'ENOENT') return true;
    // A mount point stays, as does a folder below one that this user may not write.
    if (['ENOTEMPTY', 'EEXIST', 'EBUSY', 'EACCES', 'EPERM', 'EROFS'].includes(code)) return false;
    throw error;
  }
}

function unlessAbsent(error: unknown): void {
  if (systemCode(error) !== 'ENOENT') throw error;
}
