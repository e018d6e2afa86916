/** A PostgreSQL with the programs for backups: from the PATH, else the newest of Debian's folders. */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { must, run } from './cache.ts';

const DEBIAN = '/usr/lib/postgresql';
const ROLE = 'postern';
const START_LIMIT_MS = 30_000;
const POLL_MS = 50;

export type PostgresSearch =
  | { readonly kind: 'found'; readonly bin: string; readonly version: string }
  | { readonly kind: 'missing'; readonly message: string };

export async function findPostgres(): Promise<PostgresSearch> {
  const onPath = await run('pg_config', ['--bindir']);
  const debian = (await readdir(DEBIAN).catch(() => [])).sort((left, right) => Number(right) - Number(left));
  for (const bin of [
    ...(onPath.ok ? [onPath.output.trim()] : []),
    ...debian.map((major) => join(DEBIAN, major, 'bin')),
  ]) {
    const server = await run(join(bin, 'postgres'), ['--version']);
    const dump = await run(join(bin, 'pg_dump'), ['--version']);
    if (!server.ok || !dump.ok) continue;
    return { kind: 'found', bin, version: /\d+(?:\.\d+)?/.exec(server.output)?.[0] ?? '' };
  }
  return { kind: 'missing', message: 'no PostgreSQL with pg_dump is here: install the package postgresql' };
}

export interface ScratchPostgres {
  /** Of a new, empty database. */
  create(name: string): Promise<string>;
  stop(): Promise<void>;
}

/** PostgreSQL does not run as root. */
function unprivileged(command: string, args: readonly string[]): readonly [string, readonly string[]] {
  return process.getuid?.() === 0
    ? ['setpriv', ['--reuid=nobody', '--regid=nogroup', '--clear-groups', command, ...args]]
    : [command, args];
}

/** Starts a server of its own on a socket in `folder`, which its user must be able to pass through. */
export async function startPostgres(bin: string, folder: string): Promise<ScratchPostgres> {
  const home = join(folder, 'postgres');
  await mkdir(home);
  await chmod(home, 0o777);
  const data = join(home, 'data');
  const [initdb, itsArgs] = unprivileged(join(bin, 'initdb'), [
    '-D',
    data,
    '-U',
    ROLE,
    '--auth=trust',
    '--no-sync',
    '--encoding=UTF8',
  ]);
  await must(initdb, itsArgs, { cwd: home });
  const [postgres, args] = unprivileged(join(bin, 'postgres'), [
    '-D',
    data,
    '-k',
    home,
    '-c',
    'listen_addresses=',
    '-c',
    'fsync=off',
  ]);
  const child = spawn(postgres, [...args], { cwd: home, stdio: 'ignore' });
  const ended = once(child, 'exit');
  const kill = (): void => void child.kill('SIGKILL');
  process.once('exit', kill);
  await answering(bin, home, child);
  return {
    async create(name) {
      await must(join(bin, 'createdb'), ['-h', home, '-U', ROLE, name]);
      return `postgresql://${ROLE}@/${name}?host=${home}`;
    },
    async stop() {
      child.kill('SIGINT');
      await ended;
      process.off('exit', kill);
    },
  };
}

async function answering(bin: string, home: string, child: ChildProcess): Promise<void> {
  for (const deadline = performance.now() + START_LIMIT_MS; performance.now() < deadline; await sleep(POLL_MS)) {
    if (child.exitCode !== null) throw new Error(`PostgreSQL ended with ${child.exitCode}`);
    if ((await run(join(bin, 'pg_isready'), ['-h', home])).ok) return;
  }
  throw new Error(`PostgreSQL did not answer within ${START_LIMIT_MS} ms`);
}
