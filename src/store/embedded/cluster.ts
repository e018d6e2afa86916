/**
 * The files of one PostgreSQL cluster: made whole or not at all, and looked at before a server is trusted with them.
 */

import { execFile } from 'node:child_process';
import { chmod, chown, mkdir, mkdtemp, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { PostgresFiles } from './binaries.ts';
import { EmbeddedError, reason, systemCode } from './error.ts';
import { readIfThere } from './files.ts';
import type { Home } from './home.ts';
import { giveTree } from './ownership.ts';
import { anyNamedUser, type ServerUser } from './server-user.ts';

const run = promisify(execFile);
const INITDB_TIMEOUT_MS = 120_000;

/** The role that owns everything in the embedded database; only who reaches the socket's private folder can be it. */
export const ROLE = 'postern';

/**
 * Makes the cluster when there is none. Rejects with an EmbeddedError when there is something that is not one, or not
 * for this version.
 */
export async function ensureCluster(home: Home, files: PostgresFiles, durable: boolean): Promise<void> {
  if (await isCluster(home, files.major)) {
    return;
  }
  await makeCluster(home, files, durable);
}

async function isCluster({ cluster, dataDir, user }: Home, major: string): Promise<boolean> {
  const entries = await readdir(cluster).catch((error: unknown) => {
    if (systemCode(error) === 'ENOENT') {
      return undefined;
    }
    throw new EmbeddedError(`${cluster} cannot be read (${reason(error)}). Start Postern as the user who owns it.`);
  });
  if (entries === undefined || entries.length === 0) {
    return false;
  }
  const version = (await readIfThere(join(cluster, 'PG_VERSION')))?.trim();
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
 * initdb wants its user to have a name, and the server's user has none: another user makes the files, out of
 * everybody's reach.
 */
async function makeCluster(home: Home, files: PostgresFiles, durable: boolean): Promise<void> {
  const { user } = home;
  const guard = await mkdtemp(`${home.cluster}.new-`);
  const draft = join(guard, 'postgres');
  const maker = user && { uid: (await anyNamedUser()).uid, gid: user.gid };
  try {
    await mkdir(draft, { mode: 0o700 });
    if (user !== undefined && maker !== undefined) {
      // Only the server's own group gets through. Processes of the maker's user in other groups can neither come here
      // nor trace initdb.
      await chown(guard, 0, user.gid);
      await chmod(guard, 0o710);
      await chown(draft, maker.uid, maker.gid);
    }
    await initialize(files, draft, durable, maker);
    if (user !== undefined && maker !== undefined) await giveTree(draft, maker.uid, user);
    await rename(draft, home.cluster);
  } catch (error) {
    if (error instanceof EmbeddedError) throw error;
    // Another starting process was faster.
    if (!['ENOTEMPTY', 'EEXIST'].includes(systemCode(error) ?? '')) {
      throw new EmbeddedError(
        `A database could not be created in ${home.directory}: ${lastLine(error)}.${adviceOn(error)}`,
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
      `--username=${ROLE}`,
      '--encoding=UTF8',
      '--locale=C',
      '--locale-provider=builtin',
      '--builtin-locale=C.UTF-8',
      // Only the server's user gets to the socket, in its private folder, and there is no other way in.
      '--auth-local=trust',
      '--auth-host=reject',
      '--no-instructions',
      ...(durable ? [] : ['--no-sync']),
    ],
    { cwd: '/', env: { PATH: process.env['PATH'] ?? '', LC_ALL: 'C' }, timeout: INITDB_TIMEOUT_MS, ...maker },
  );
}

/** In a container the user may be a mere number, which initdb does not take. */
function adviceOn(error: unknown): string {
  return /could not look up effective user ID/.test(lastLine(error))
    ? ' Give this user a name in /etc/passwd, start Postern as another user, or set database.url.'
    : '';
}

function lastLine(error: unknown): string {
  const said = error instanceof Error && 'stderr' in error && typeof error.stderr === 'string' ? error.stderr : '';
  const lines = said.split('\n').filter((line) => /error|fatal|panic|could not/i.test(line));
  return (lines.at(-1) ?? reason(error)).replace(/\.$/, '');
}
