/**
 * The embedded PostgreSQL server, for an installation without a database of its own. Its data is in `data-dir`, and
 * only a Unix socket leads to it.
 *
 * The server outlives a killed Postern, and the next start with the same `data-dir` adopts it. Several processes may
 * share one server, and the last one to stop ends it. Each process holds one connection, its presence: it shows other
 * processes that this one uses the server, and its end shows this process that the server must be started again.
 */

import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { reasonOf } from '../../domain/errors.ts';
import { endClient } from '../pool.ts';
import { postgresFiles } from './binaries.ts';
import { ensureCluster, OWNER_ROLE } from './cluster.ts';
import { EmbeddedError } from './error.ts';
import { replaceFile } from './files.ts';
import { openHome } from './home.ts';
import { readPidFile, whoIs } from './processes.ts';
import { ask, type RunningPostgres, runServer, type ServerParts, stopServer } from './server.ts';

export interface EmbeddedOptions {
  readonly dataDir: string;
  /** False: rejects with a NoEmbeddedDatabaseError if there is no database. Default: true. */
  readonly create?: boolean;
  /** Called with one sentence for the log. */
  readonly log?: (message: string) => void;
  /** False: data may be lost in a power failure. Faster, only for tests. */
  readonly durable?: boolean;
  /** A running server that does not answer for this time is stopped by force. Default: 10000. */
  readonly silenceTimeoutMs?: number;
}

export interface EmbeddedPostgres {
  /** Stays valid until stop(), also after a restart of the server. */
  readonly url: string;
  /** Process id of the current server. */
  readonly pid: () => number;
  /** Ends the server, unless another Postern uses it. Close your own connections first. */
  stop(): Promise<void>;
}

const DATABASE = 'postern';
/** CREATE DATABASE copies files and waits for a checkpoint. */
const STATEMENT_TIMEOUT_MS = 30_000;
const MAX_BACKOFF_MS = 5000;
/** Bounds the time for which the server shows a connection that was just closed. */
const PRESENCE_END_MS = 1000;

/** Starts or adopts the server, and resolves when it answers. Rejects with an EmbeddedError. */
export async function startEmbedded(options: EmbeddedOptions): Promise<EmbeddedPostgres> {
  const { dataDir, create = true, log = () => undefined, durable = true, silenceTimeoutMs = 10_000 } = options;
  const home = await openHome(dataDir, log, create);
  const files = await postgresFiles(
    home.user,
    home.directory === home.dataDir ? home.directory : join(home.directory, '..'),
    log,
  );
  await ensureCluster(home, files, durable);
  let server = await start({ home, files, durable, silenceTimeoutMs, log }, create);
  // A restart uses the same socket, because other processes know the address.
  const parts: ServerParts = { home: { ...home, socketDir: server.socketDir }, files, durable, silenceTimeoutMs, log };
  const url = `postgresql://${OWNER_ROLE}@/${DATABASE}?host=${encodeURIComponent(server.socketDir)}`;
  await replaceFile(join(home.dataDir, 'database.url'), `${url}\n`);

  let stopping = false;
  let restarting: Promise<void> | undefined;
  watch();

  function watch(): void {
    server.presence.once('end', () => {
      if (!stopping) {
        restarting = restart();
      }
    });
  }

  async function restart(): Promise<void> {
    log('the connection to the PostgreSQL server was lost: making sure that it runs');
    for (let backoffMs = 100; !stopping; backoffMs = Math.min(backoffMs * 2, MAX_BACKOFF_MS)) {
      try {
        server = await start(parts, create);
        watch();
        return;
      } catch (error) {
        log(`the PostgreSQL server could not be restarted: ${reasonOf(error)}`);
        await sleep(backoffMs);
      }
    }
  }

  return {
    url,
    pid: () => server.pid,
    async stop() {
      if (stopping) return;
      stopping = true;
      await restarting;
      const isLast = await isLastUser(server.presence);
      await endClient(server.presence);
      const recorded = await readPidFile(home.cluster);
      if (recorded === undefined || (await whoIs(recorded.pid, home.cluster)) !== 'server') return;
      if (isLast) {
        await stopServer(recorded.pid, home.cluster);
      } else {
        log('leaving the PostgreSQL server to another Postern that uses it');
      }
    },
  };
}

async function start(parts: ServerParts, create: boolean): Promise<RunningPostgres> {
  const server = await runServer(parts);
  parts.log(
    `the PostgreSQL server ${server.adopted ? 'was running already' : 'has started'} (process ${server.pid}, ${parts.home.cluster})`,
  );
  if (create) await createDatabase(server.presence);
  return server;
}

async function createDatabase(presence: pg.Client): Promise<void> {
  const found = await ask(presence, STATEMENT_TIMEOUT_MS, `select 1 from pg_database where datname = '${DATABASE}'`);
  if (found.length > 0) return;
  await ask(presence, STATEMENT_TIMEOUT_MS, `create database ${DATABASE}`).catch((error: unknown) => {
    // Another start created it.
    if (!(error instanceof pg.DatabaseError) || !['42P04', '23505', '55006'].includes(error.code ?? '')) {
      throw new EmbeddedError(`The embedded database could not be created: ${reasonOf(error)}. Start again.`);
    }
  });
}

/**
 * Reports whether no other Postern is connected. A Postern that is stopping does not count, so that one of two that
 * stop at once ends the server.
 */
async function isLastUser(presence: pg.Client): Promise<boolean> {
  try {
    await ask(presence, PRESENCE_END_MS, "set application_name = 'postern (stopping)'");
    for (const end = performance.now() + PRESENCE_END_MS; performance.now() < end; await sleep(20)) {
      const others = await ask(
        presence,
        PRESENCE_END_MS,
        "select 1 from pg_stat_activity where application_name = 'postern' limit 1",
      );
      if (others.length === 0) return true;
    }
    return false;
  } catch {
    // The server does not answer, so no process can use it.
    return true;
  }
}
