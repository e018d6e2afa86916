/** The PostgreSQL server of one cluster: adopts a running one, starts one if none runs, and stops it. */

import { spawn } from 'node:child_process';
import { open, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { reasonOf } from '../../domain/errors.ts';
import type { PostgresFiles } from './binaries.ts';
import { OWNER_ROLE } from './cluster.ts';
import { EmbeddedError } from './error.ts';
import type { Home } from './home.ts';
import { helpersOf, type PidFile, readPidFile, signal, whoIs } from './processes.ts';
import { withStartLock } from './start-lock.ts';

export interface RunningPostgres {
  readonly pid: number;
  readonly socketDir: string;
  /** True if the server was already running. */
  readonly adopted: boolean;
  /** A connection that stays open until the server ends. */
  readonly presence: pg.Client;
}

export interface ServerParts {
  readonly home: Home;
  readonly files: PostgresFiles;
  readonly durable: boolean;
  /** A running server that does not answer for this time is unresponsive. */
  readonly silenceTimeoutMs: number;
  readonly log: (message: string) => void;
}

/** Recovery after a crash reads the WAL since the last checkpoint, which may take minutes. */
const START_TIMEOUT_MS = 120_000;
const CONNECT_TIMEOUT_MS = 2000;
/** Helper processes detect the end of their server when they next wait for an event. */
const ORPHANS_LEAVE_MS = 1000;
/** Bounds the retries of a start while undetected helper processes hold the shared memory. */
const SHARED_MEMORY_MS = 20_000;
/** An empty lock file is a remainder of a crash after this time. */
const EMPTY_LOCK_MS = 10_000;
/** Signals of PostgreSQL's fast and immediate shutdown, and SIGKILL, each with its timeout in milliseconds. */
const SHUTDOWN: Record<'graceful' | 'unresponsive', readonly (readonly [NodeJS.Signals, number])[]> = {
  graceful: [
    ['SIGINT', 10_000],
    ['SIGQUIT', 5000],
    ['SIGKILL', 5000],
  ],
  unresponsive: [
    ['SIGQUIT', 2000],
    ['SIGKILL', 5000],
  ],
};
const POLL_MS = 20;
const MAX_LOG_BYTES = 1_000_000;

/**
 * Returns a server that answers. Several processes may call it for one cluster at once: one starts the server, the
 * others adopt it.
 */
export async function runServer(parts: ServerParts): Promise<RunningPostgres> {
  const deadline = performance.now() + START_TIMEOUT_MS;
  while (performance.now() < deadline) {
    const outcome = await adoptOrStart(parts, deadline);
    if (outcome !== 'try again') return outcome;
    await sleep(POLL_MS);
  }
  throw new EmbeddedError(
    `PostgreSQL did not become ready in ${START_TIMEOUT_MS / 1000} s. It may still be recovering: read ${parts.home.logFile}, then start again.`,
  );
}

/** Shuts the server down, by force if that takes too long. */
export async function stopServer(
  pid: number,
  cluster: string,
  mode: 'graceful' | 'unresponsive' = 'graceful',
): Promise<void> {
  for (const [name, timeoutMs] of SHUTDOWN[mode]) {
    signal(pid, name);
    if (await within(timeoutMs, async () => (await whoIs(pid, cluster)) !== 'server')) return;
  }
  throw new EmbeddedError(`The PostgreSQL server (process ${pid}) cannot be stopped. End it, then start again.`);
}

/** One process at a time cleans up and starts a server. The others adopt it. */
async function adoptOrStart(parts: ServerParts, deadline: number): Promise<RunningPostgres | 'try again'> {
  const recorded = await findServer(parts.home);
  if (recorded.kind === 'server') return adopt(parts, recorded.file);
  return withStartLock(parts.home.dataDir, deadline, async () => {
    const { kind } = await findServer(parts.home);
    if (kind === 'server') return 'try again';
    await cleanUp(parts, kind === 'stranger');
    return startServer(parts, deadline);
  });
}

type RecordedServer = { readonly kind: 'server'; readonly file: PidFile } | { readonly kind: 'stranger' | 'gone' };

/** Reports which process has the id that the last server recorded. */
async function findServer({ cluster }: Home): Promise<RecordedServer> {
  const file = await readPidFile(cluster);
  if (file === undefined) return { kind: 'gone' };
  const kind = await whoIs(file.pid, cluster);
  return kind === 'server' ? { kind, file } : { kind };
}

async function adopt(parts: ServerParts, recorded: PidFile): Promise<RunningPostgres | 'try again'> {
  const { cluster } = parts.home;
  const { pid, socketDir = parts.home.socketDir } = recorded;
  let running: RunningPostgres | undefined;
  let silentSince = performance.now();
  const answered = await within(START_TIMEOUT_MS, async () => {
    const presence = await connect(socketDir, cluster).catch((error: unknown) => {
      if (error instanceof pg.DatabaseError) {
        // The server is starting up or shutting down, so it responds.
        silentSince = performance.now();
      }
      return undefined;
    });
    running = presence && { pid, socketDir, adopted: true, presence };
    return (
      presence !== undefined ||
      performance.now() - silentSince > parts.silenceTimeoutMs ||
      (await whoIs(pid, cluster)) !== 'server'
    );
  });
  if (running !== undefined) return running;
  if (!answered || performance.now() - silentSince > parts.silenceTimeoutMs) {
    parts.log(`stopping the PostgreSQL server (process ${pid}), which does not answer`);
    await stopServer(pid, cluster, 'unresponsive');
  }
  return 'try again';
}

/**
 * Removes what a killed server left: helper processes, and lock files whose process id belongs to another process now.
 * The caller holds the start lock.
 */
async function cleanUp({ home, log }: ServerParts, isIdReused: boolean): Promise<void> {
  const noneLeft = async () => (await helpersOf(home.cluster, home.user)).length === 0;
  if (!(await within(ORPHANS_LEAVE_MS, noneLeft))) {
    const orphans = await helpersOf(home.cluster, home.user);
    log(`ending ${orphans.length} processes that a killed PostgreSQL server left behind`);
    for (const pid of orphans) {
      signal(pid, 'SIGKILL');
    }
    if (!(await within(5000, noneLeft))) throw processesLeft(await helpersOf(home.cluster, home.user));
  }
  if (isIdReused) {
    await rm(join(home.cluster, 'postmaster.pid'), { force: true });
    await rm(join(home.socketDir, '.s.PGSQL.5432.lock'), { force: true });
  }
}

function processesLeft(pids: readonly number[]): EmbeddedError {
  const which = pids.length > 0 ? ` (${pids.join(', ')})` : '';
  return new EmbeddedError(
    `A PostgreSQL server that was killed left processes behind${which}. End them, then start again.`,
  );
}

async function startServer(
  { home, files, durable }: ServerParts,
  deadline: number,
): Promise<RunningPostgres | 'try again'> {
  const logStart = await trimLog(home.logFile);
  const logFile = await open(home.logFile, 'a', 0o600);
  const settings = {
    listen_addresses: '',
    unix_socket_directories: home.socketDir,
    unix_socket_permissions: '0700',
    port: '5432',
    // Logs only errors that keep the server from running. Errors of statements go to their client, and may contain
    // personal data.
    log_min_messages: 'fatal',
    log_min_error_statement: 'panic',
    ...(durable ? {} : { fsync: 'off', full_page_writes: 'off' }),
  };
  const child = spawn(
    join(files.directory, 'bin/postgres'),
    ['-D', home.cluster, ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])],
    // A separate session, so that Ctrl-C at the terminal signals only Postern.
    {
      cwd: '/',
      detached: true,
      stdio: ['ignore', logFile.fd, logFile.fd],
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
        // If two processes started a server at once, the other server may have answered, and this one ends.
        const { pid } = (await readPidFile(home.cluster)) ?? { pid: child.pid };
        return { pid, socketDir: home.socketDir, adopted: pid !== child.pid, presence };
      }
      await sleep(POLL_MS);
    }
  } finally {
    await logFile.close();
  }
  const output = await logSince(home.logFile, logStart);
  if (/lock file .* already exists/.test(output)) {
    // Another process started a server.
    return 'try again';
  }
  if (/lock file .* is empty/.test(output) && deadline - performance.now() > START_TIMEOUT_MS - EMPTY_LOCK_MS) {
    // The server of another process created the file and has not written it yet.
    await sleep(POLL_MS);
    return 'try again';
  }
  if (/pre-existing shared memory block/.test(output)) {
    if (deadline - performance.now() < START_TIMEOUT_MS - SHARED_MEMORY_MS) {
      throw processesLeft(await helpersOf(home.cluster, home.user));
    }
    await sleep(10 * POLL_MS);
    return 'try again';
  }
  // The server rejects connections with "the database system is starting up" until it is ready.
  const cause = output.match(/(?:FATAL|PANIC): {2}(?!the database system is )(.*)/)?.[1] ?? ended;
  // The time is over, and the server still recovers.
  if (cause === undefined) return 'try again';
  throw startFailure(home, cause);
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

/** Connects, and checks that the server serves this cluster. Rejects if no server is ready. */
async function connect(socketDir: string, cluster: string): Promise<pg.Client> {
  const client = new pg.Client({
    host: socketDir,
    port: 5432,
    user: OWNER_ROLE,
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

/** Runs one statement. Closes the connection if there is no result in time. */
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

async function logSince(file: string, from: number): Promise<string> {
  return (await readFile(file).catch((error: unknown) => Buffer.from(reasonOf(error)))).subarray(from).toString('utf8');
}

/** Polls a condition. Returns false if it does not become true in time. */
async function within(limitMs: number, condition: () => Promise<boolean>): Promise<boolean> {
  const end = performance.now() + limitMs;
  for (;;) {
    if (await condition()) return true;
    if (performance.now() > end) return false;
    await sleep(POLL_MS);
  }
}
