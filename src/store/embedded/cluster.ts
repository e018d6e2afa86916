/** The files of one PostgreSQL cluster. They are created atomically, and checked before a server starts on them. */

import { execFile } from 'node:child_process';
import { chmod, chown, mkdir, mkdtemp, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { reasonOf, systemCode } from '../../domain/errors.ts';
import type { PostgresFiles } from './binaries.ts';
import { EmbeddedError } from './error.ts';
import { readIfPresent } from './files.ts';
import type { Home } from './home.ts';
import { giveTree } from './ownership.ts';
import { anyNamedUser, type ServerUser } from './server-user.ts';

const run = promisify(execFile);
const INITDB_TIMEOUT_MS = 120_000;

/** The role that owns the embedded database. Only processes that reach the socket's private folder can use it. */
export const OWNER_ROLE = 'postern';

/**
 * Creates the cluster if there is none. Rejects with an EmbeddedError if the folder contains something else, or a
 * cluster of another version.
 */
export async function ensureCluster(home: Home, files: PostgresFiles, durable: boolean): Promise<void> {
  if (await isCluster(home, files.major)) return;
  await createCluster(home, files, durable);
}

async function isCluster({ cluster, dataDir, user }: Home, major: string): Promise<boolean> {
  const entries = await readdir(cluster).catch((error: unknown) => {
    if (systemCode(error) === 'ENOENT') return undefined;
    throw new EmbeddedError(`${cluster} cannot be read (${reasonOf(error)}). Start Postern as the user who owns it.`);
  });
  if (entries === undefined || entries.length === 0) return false;
  const version = (await readIfPresent(join(cluster, 'PG_VERSION')))?.trim();
  const advice = `Restore ${dataDir} from a backup, or move ${cluster} away to begin with an empty database.`;
  if (version === undefined) {
    throw new EmbeddedError(
      `${cluster} is not a PostgreSQL data directory: it holds files but no PG_VERSION. ${advice}`,
    );
  }
  if (!/^\d{1,3}$/.test(version)) {
    throw new EmbeddedError(`${cluster} is damaged: its PG_VERSION is not a version. ${advice}`);
  }
  if (version !== major) {
    throw new EmbeddedError(
      `${cluster} was created by PostgreSQL ${version}, and this is PostgreSQL ${major}. Move the data with pg_dump and pg_restore of both versions, or run the version of Postern that created it.`,
    );
  }
  if (!entries.includes('global') || !entries.includes('pg_wal')) {
    throw new EmbeddedError(`${cluster} is damaged: parts of it are missing. ${advice}`);
  }
  const owner = (await stat(cluster)).uid;
  const runsAs = user?.uid ?? process.getuid?.();
  if (runsAs !== undefined && owner !== runsAs) {
    throw new EmbeddedError(
      `${cluster} belongs to user ${owner}, and PostgreSQL would run as user ${runsAs}. Start Postern as its owner, or change the owner of ${cluster}.`,
    );
  }
  await chmod(cluster, 0o700);
  return true;
}

/**
 * initdb requires a user with a name, and the server's user has none. Another user therefore creates the files, in a
 * folder that no other process can reach.
 */
async function createCluster(home: Home, files: PostgresFiles, durable: boolean): Promise<void> {
  const { user } = home;
  const guard = await mkdtemp(`${home.cluster}.new-`);
  const draft = join(guard, 'postgres');
  const maker = user && { uid: (await anyNamedUser()).uid, gid: user.gid };
  try {
    await mkdir(draft, { mode: 0o700 });
    if (user !== undefined && maker !== undefined) {
      // Only the server's own group has access. Processes of the creating user in other groups can neither read the
      // files nor trace initdb.
      await chown(guard, 0, user.gid);
      await chmod(guard, 0o710);
      await chown(draft, maker.uid, maker.gid);
    }
    await initialize(files, draft, durable, maker);
    if (user !== undefined && maker !== undefined) await giveTree(draft, maker.uid, user);
    await rename(draft, home.cluster);
  } catch (error) {
    if (error instanceof EmbeddedError) throw error;
    // Another start created the cluster.
    if (!['ENOTEMPTY', 'EEXIST'].includes(systemCode(error) ?? '')) {
      throw new EmbeddedError(
        `A database could not be created in ${home.directory}: ${causeOf(error)}.${adviceOn(error)}`,
      );
    }
  } finally {
    await rm(guard, { recursive: true, force: true });
  }
}

async function initialize(
  files: PostgresFiles,
  directory: string,
  durable: boolean,
  maker: ServerUser | undefined,
): Promise<void> {
  await run(
    join(files.directory, 'bin/initdb'),
    [
      `--pgdata=${directory}`,
      `--username=${OWNER_ROLE}`,
      '--encoding=UTF8',
      '--locale=C',
      '--locale-provider=builtin',
      '--builtin-locale=C.UTF-8',
      // Only the server's user reaches the socket in its private folder, and there is no other access.
      '--auth-local=trust',
      '--auth-host=reject',
      '--no-instructions',
      ...(durable ? [] : ['--no-sync']),
    ],
    { cwd: '/', env: { PATH: process.env['PATH'] ?? '', LC_ALL: 'C' }, timeout: INITDB_TIMEOUT_MS, ...maker },
  );
}

function adviceOn(error: unknown): string {
  const cause = causeOf(error);
  if (FULL.test(cause)) return ' Free some space on its disk, then start again.';
  // In a container the user may have no name, which initdb requires.
  return /could not look up effective user ID/.test(cause)
    ? ' Give this user a name in /etc/passwd, start Postern as another user, or set database.url.'
    : '';
}

const FULL = /No space left on device/;

/** The last line that names an error. PostgreSQL reports further errors after a full disk. */
function causeOf(error: unknown): string {
  const output = error instanceof Error && 'stderr' in error && typeof error.stderr === 'string' ? error.stderr : '';
  const lines = output.split('\n').filter((line) => /error|fatal|panic|could not/i.test(line));
  return (lines.find((line) => FULL.test(line)) ?? lines.at(-1) ?? reasonOf(error)).replace(/\.$/, '');
}
