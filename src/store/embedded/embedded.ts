/**
 * A real PostgreSQL server of Postern's own, for whoever brings none: kept in `data-dir`, reached by a Unix socket
 * alone.
 *
 * The server outlives the process that started it when that one is killed; the next start with the same `data-dir`
 * adopts it. Several processes may share one, and whoever stops last ends it. Each holds one connection, its presence,
 * which tells the others that it is there and tells itself when the server has died, to start it again.
 */

import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { postgresFiles } from './binaries.ts';
import { ensureCluster, ROLE } from './cluster.ts';
import { EmbeddedError, reason } from './error.ts';
import { replaceFile } from './files.ts';
import { openHome } from './home.ts';
import { readPidFile, whoIs } from './processes.ts';
import { ask, type RunningServer, runServer, type ServerParts, stopServer } from './server.ts';

export interface EmbeddedOptions {
  readonly dataDir: string;
  /**
   * False: a database that does not exist is refused with a NoEmbeddedDatabaseError, and none is made. Default: true.
   */
  readonly create?: boolean;
  /** One sentence at a time, for the log. */
  readonly log?: (message: string) => void;
  /** False gives up what outlasts a power failure, for speed: for tests alone. */
  readonly durable?: boolean;
  /** How long a server that runs already may say nothing before it is stopped by force; 10000 unless told. */
  readonly silenceTimeoutMs?: number;
}

export interface EmbeddedPostgres {
  /** Good as long as this handle lives, also after the server was started again. */
  readonly url: string;
  /** Process id of the server that answered last. */
  readonly pid: () => number;
  /** Ends the server, unless another Postern uses it. Close your own connections first. */
  stop(): Promise<void>;
}

const DATABASE = 'postern';
/** Making a database copies files and waits for a checkpoint. */
const STATEMENT_TIMEOUT_MS = 30_000;
const MAX_BACKOFF_MS = 5000;
/** How long a connection of ours that was just closed may still be seen by the server. */
const GOODBYE_MS = 1000;

/** Resolves when the server answers. Rejects with an EmbeddedError that says what is wrong and what to do. */
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
  // Whatever the first one uses stays: the address is known to others by now.
  const parts: ServerParts = { home: { ...home, socketDir: server.socketDir }, files, durable, silenceTimeoutMs, log };
  const url = `postgresql://${ROLE}@/${DATABASE}?host=${encodeURIComponent(server.socketDir)}`;
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
        log(`the PostgreSQL server could not be restarted: ${reason(error)}`);
        await sleep(backoffMs);
      }
    }
  }

  return {
    url,
    pid: () => server.pid,
    async stop() {
      if (stopping) {
        return;
      }
      stopping = true;
      await restarting;
      const alone = await isAlone(server.presence);
      await goodbye(server.presence);
      const recorded = await readPidFile(home.cluster);
      if (recorded === undefined || (await whoIs(recorded.pid, home.cluster)) !== 'server') {
        return;
      }
      if (alone) {
        await stopServer(recorded.pid, home.cluster);
      } else {
        log('leaving the PostgreSQL server to another Postern that uses it');
      }
    },
  };
}

async function start(parts: ServerParts, create: boolean): Promise<RunningServer> {
  const server = await runServer(parts);
  parts.log(
    `the PostgreSQL server ${server.adopted ? 'was running already' : 'has started'} (process ${server.pid}, ${parts.home.cluster})`,
  );
  if (create) await makeDatabase(server.presence);
  return server;
}

async function makeDatabase(presence: pg.Client): Promise<void> {
  const found = await ask(presence, STATEMENT_TIMEOUT_MS, `select 1 from pg_database where datname = '${DATABASE}'`);
  if (found.length > 0) {
    return;
  }
  await ask(presence, STATEMENT_TIMEOUT_MS, `create database ${DATABASE}`).catch((error: unknown) => {
    // Another starting process was faster.
    if (!(error instanceof pg.DatabaseError) || !['42P04', '23505', '55006'].includes(error.code ?? '')) {
      throw new EmbeddedError(`The embedded database could not be created: ${reason(error)}. Start again.`);
    }
  });
}

/**
 * True when no other Postern is connected. One that is stopping itself no longer counts, so that of two that stop at
 * once one ends it.
 */
async function isAlone(presence: pg.Client): Promise<boolean> {
  try {
    await ask(presence, GOODBYE_MS, "set application_name = 'postern (stopping)'");
    for (const end = performance.now() + GOODBYE_MS; performance.now() < end; await sleep(20)) {
      const others = await ask(
        presence,
        GOODBYE_MS,
        "select 1 from pg_stat_activity where application_name = 'postern' limit 1",
      );
      if (others.length === 0) {
        return true;
      }
    }
    return false;
  } catch {
    // It does not answer, so it serves nobody.
    return true;
  }
}

async function goodbye(presence: pg.Client): Promise<void> {
  const cut = setTimeout(() => presence.connection.stream.destroy(), GOODBYE_MS);
  await presence.end().catch(() => undefined);
  clearTimeout(cut);
}
