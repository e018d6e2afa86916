/** One PostgreSQL server over one cluster: finds the one that runs, starts one when none does, and stops it. */

import { spawn } from 'node:child_process';
import { open, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { PostgresFiles } from './binaries.ts';
import { ROLE } from './cluster.ts';
import { EmbeddedError, reason } from './error.ts';
import type { Home } from './home.ts';
import { helpersOf, type PidFile, readPidFile, signal, whoIs } from './processes.ts';
import { withStartLock } from './start-lock.ts';

export interface RunningServer {
  readonly pid: number;
  readonly socketDir: string;
  /** True when it ran already. */
  readonly adopted: boolean;
  /** A connection of ours that lives as long as the server does. */
  readonly presence: pg.Client;
}

export interface ServerParts {
  readonly home: Home;
  readonly files: PostgresFiles;
  readonly durable: boolean;
  /** A server that runs but says nothing for so long is hung. */
  readonly silenceTimeoutMs: number;
  readonly log: (message: string) => void;
}

/** Recovery after a crash reads the log since the last checkpoint, minutes at worst. */
const START_TIMEOUT_MS = 120_000;
const CONNECT_TIMEOUT_MS = 2000;
/** Helper processes notice that their server is gone when they next wait for something. */
const ORPHANS_LEAVE_MS = 1000;
/** For those that cannot be found, how long the server itself is asked whether their shared memory is free. */
const SHARED_MEMORY_MS = 20_000;
/** How long a lock file may be empty before it is what a crash left. */
const EMPTY_LOCK_MS = 10_000;
/** PostgreSQL's fast and immediate shutdown, and the end of patience; how long each is waited for, in milliseconds. */
const STOPPING: Record<'patient' | 'hung', readonly (readonly [NodeJS.Signals, number])[]> = {
  patient: [
    ['SIGINT', 10_000],
    ['SIGQUIT', 5000],
    ['SIGKILL', 5000],
  ],
  hung: [
    ['SIGQUIT', 2000],
    ['SIGKILL', 5000],
  ],
};
const POLL_MS = 20;
const MAX_LOG_BYTES = 1_000_000;

/**
 * Resolves with a server that answers. Several processes may call it for one cluster at once: one starts it, the others
 * adopt it.
 */
export async function runServer(parts: ServerParts): Promise<RunningServer> {
  const deadline = performance.now() + START_TIMEOUT_MS;
  while (performance.now() < deadline) {
    const outcome = await adoptOrStart(parts, deadline);
    if (outcome !== 'try again') {
      return outcome;
    }
    await sleep(POLL_MS);
  }
  throw new EmbeddedError(
    `PostgreSQL did not become ready in ${START_TIMEOUT_MS / 1000} s. It may still be recovering: read ${parts.home.logFile}, then start again.`,
  );
}

/** Ends the server in an orderly way, or by force when that takes too long. */
export async function stopServer(
  pid: number,
  cluster: string,
  patience: 'patient' | 'hung' = 'patient',
): Promise<void> {
  for (const [name, timeoutMs] of STOPPING[patience]) {
    signal(pid, name);
    if (await within(timeoutMs, async () => (await whoIs(pid, cluster)) !== 'server')) {
      return;
    }
  }
  throw new EmbeddedError(`The PostgreSQL server (process ${pid}) cannot be stopped. End it, then start again.`);
}

/** Only one process at a time clears away and starts; the others adopt its server. */
async function adoptOrStart(parts: ServerParts, deadline: number): Promise<RunningServer | 'try again'> {
  const recorded = await findServer(parts.home);
  if (recorded.is === 'server') return adopt(parts, recorded.file);
  return withStartLock(parts.home.dataDir, deadline, async () => {
    const { is } = await findServer(parts.home);
    if (is === 'server') return 'try again';
    await clearAway(parts, is === 'stranger');
    return startServer(parts, deadline);
  });
}

type Recorded = { readonly is: 'server'; readonly file: PidFile } | { readonly is: 'stranger' | 'gone' };

/** Reports what runs under the process id that the last server wrote. */
async function findServer({ cluster }: Home): Promise<Recorded> {
  const file = await readPidFile(cluster);
  if (file === undefined) return { is: 'gone' };
  const is = await whoIs(file.pid, cluster);
  return is === 'server' ? { is, file } : { is };
}

async function adopt(parts: ServerParts, recorded: PidFile): Promise<RunningServer | 'try again'> {
  const { cluster } = parts.home;
  let running: RunningServer | undefined;
  let silentSince = performance.now();
  const answered = await within(START_TIMEOUT_MS, async () => {
    const presence = await connect(recorded.socketDir || parts.home.socketDir, cluster).catch((error: unknown) => {
      if (error instanceof pg.DatabaseError) {
        // "Starting up" or "shutting down": it lives.
        silentSince = performance.now();
      }
      return undefined;
    });
    running = presence && { ...recorded, adopted: true, presence };
    return (
      presence !== undefined ||
      performance.now() - silentSince > parts.silenceTimeoutMs ||
      (await whoIs(recorded.pid, cluster)) !== 'server'
    );
  });
  if (running !== undefined) {
    return running;
  }
  if (!answered || performance.now() - silentSince > parts.silenceTimeoutMs) {
    parts.log(`stopping the PostgreSQL server (process ${recorded.pid}), which does not answer`);
    await stopServer(recorded.pid, cluster, 'hung');
  }
  return 'try again';
}

/**
 * Clears away what a killed server left: helper processes that have not noticed yet, and lock files that name a process
 * id that a stranger has now. No other process starts a server meanwhile.
 */
async function clearAway({ home, log }: ServerParts, strangerHoldsNumber: boolean): Promise<void> {
  const noneLeft = async () => (await helpersOf(home.cluster, home.user)).length === 0;
  if (!(await within(ORPHANS_LEAVE_MS, noneLeft))) {
    const orphans = await helpersOf(home.cluster, home.user);
    log(`ending ${orphans.length} processes that a killed PostgreSQL server left behind`);
    for (const pid of orphans) {
      signal(pid, 'SIGKILL');
    }
    if (!(await within(5000, noneLeft))) {
      throw leftBehind(await helpersOf(home.cluster, home.user));
    }
  }
  if (strangerHoldsNumber) {
    await rm(join(home.cluster, 'postmaster.pid'), { force: true });
    await rm(join(home.socketDir, '.s.PGSQL.5432.lock'), { force: true });
  }
}

function leftBehind(pids: readonly number[]): EmbeddedError {
  const which = pids.length > 0 ? ` (${pids.join(', ')})` : '';
  return new EmbeddedError(
    `A PostgreSQL server that was killed left processes behind${which}. End them, then start again.`,
  );
}

async function startServer(
  { home, files, durable }: ServerParts,
  deadline: number,
): Promise<RunningServer | 'try again'> {
  const logStart = await trimLog(home.logFile);
  const output = await open(home.logFile, 'a', 0o600);
  const settings = {
    listen_addresses: '',
    unix_socket_directories: home.socketDir,
    unix_socket_permissions: '0700',
    port: '5432',
    // Only what keeps it from serving: an ordinary statement's error is its client's to tell, and may name personal
    // data.
    log_min_messages: 'fatal',
    log_min_error_statement: 'panic',
    ...(durable ? {} : { fsync: 'off', full_page_writes: 'off' }),
  };
  const child = spawn(
    join(files.directory, 'bin/postgres'),
    ['-D', home.cluster, ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])],
    // Its own session: Ctrl-C at the terminal is for Postern, which then decides.
    {
      cwd: '/',
      detached: true,
      stdio: ['ignore', output.fd, output.fd],
      env: { PATH: process.env['PATH'] ?? '', LC_ALL: 'C' },
      ...home.user,
    },
  );
  let ended: string | undefined;
  child.on('error', (error) => {
    ended = error.message;
  });
  child.on('exit', (code, by) => {
    ended ??= `it ended with ${by ?? `status ${code}`}`;
  });
  child.unref();
  try {
    while (ended === undefined && performance.now() < deadline) {
      const presence = await connect(home.socketDir, home.cluster).catch(() => undefined);
      if (presence !== undefined && child.pid !== undefined) {
        // Of two that start at once, the other's may have answered, while this one is about to end.
        const { pid } = (await readPidFile(home.cluster)) ?? { pid: child.pid };
        return { pid, socketDir: home.socketDir, adopted: pid !== child.pid, presence };
      }
      await sleep(POLL_MS);
    }
  } finally {
    await output.close();
  }
  const said = await saidSince(home.logFile, logStart);
  if (/lock file .* already exists/.test(said)) {
    // Another process started one a moment earlier.
    return 'try again';
  }
  if (/lock file .* is empty/.test(said) && deadline - performance.now() > START_TIMEOUT_MS - EMPTY_LOCK_MS) {
    // Another process's server has made it and not written it yet.
    await sleep(POLL_MS);
    return 'try again';
  }
  if (/pre-existing shared memory block/.test(said)) {
    if (deadline - performance.now() < START_TIMEOUT_MS - SHARED_MEMORY_MS) {
      throw leftBehind(await helpersOf(home.cluster, home.user));
    }
    await sleep(10 * POLL_MS);
    return 'try again';
  }
  throw startFailure(home, said.match(/(?:FATAL|PANIC): {2}(.*)/)?.[1] ?? ended ?? 'it is not ready in time');
}

function startFailure(home: Home, cause: string): EmbeddedError {
  if (/No space left on device/.test(cause)) {
    return new EmbeddedError(
      `PostgreSQL cannot start: no space is left on the disk of ${home.cluster}. Free some space, then start again.`,
    );
  }
  return new EmbeddedError(
    `PostgreSQL cannot start with ${home.cluster}: ${cause}. See ${home.logFile}. Restore ${home.dataDir} from a backup, or move it away to begin with an empty database.`,
  );
}

/** Connects, and makes sure that it is this cluster which answers. Rejects when nothing does, or not yet. */
async function connect(socketDir: string, cluster: string): Promise<pg.Client> {
  const client = new pg.Client({
    host: socketDir,
    port: 5432,
    user: ROLE,
    database: 'postgres',
    application_name: 'postern',
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
  });
  client.on('error', () => undefined);
  try {
    await client.connect();
    const [row] = await ask(client, CONNECT_TIMEOUT_MS, "select current_setting('data_directory') as dir");
    if (row?.['dir'] !== cluster) {
      throw new EmbeddedError(`The server at ${socketDir} serves ${row?.['dir']}, not ${cluster}.`);
    }
    return client;
  } catch (error) {
    client.connection.stream.destroy();
    throw error;
  }
}

/** Runs one statement, and hangs up when there is no answer in time. */
export async function ask(
  client: pg.Client,
  limitMs: number,
  text: string,
): Promise<readonly Record<string, unknown>[]> {
  const cut = setTimeout(() => client.connection.stream.destroy(), limitMs);
  try {
    return (await client.query<Record<string, unknown>>(text)).rows;
  } finally {
    clearTimeout(cut);
  }
}

async function trimLog(file: string): Promise<number> {
  const { size } = await stat(file).catch(() => ({ size: 0 }));
  if (size > MAX_LOG_BYTES) {
    await rm(file);
    return 0;
  }
  return size;
}

async function saidSince(file: string, from: number): Promise<string> {
  return (await readFile(file).catch((error: unknown) => Buffer.from(reason(error)))).subarray(from).toString('utf8');
}

/** True as soon as the question is answered with true, false when the time is over. */
async function within(limitMs: number, question: () => Promise<boolean>): Promise<boolean> {
  const end = performance.now() + limitMs;
  for (;;) {
    if (await question()) {
      return true;
    }
    if (performance.now() > end) {
      return false;
    }
    await sleep(POLL_MS);
  }
}
