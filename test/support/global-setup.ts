/**
 * Before all tests: one embedded PostgreSQL for the run, with a migrated database that every test's own is a copy of, and a copy of
 * its files for tests that start an embedded PostgreSQL.
 */

import { execFile } from 'node:child_process';
import { appendFile, chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { TestProject } from 'vitest/node';
import { openDatabase } from '../../src/store/database.ts';
import { type EmbeddedOptions, startEmbedded } from '../../src/store/embedded/embedded.ts';
import { migrate } from '../../src/store/migrate.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The server's own database, for making others. */
    databaseUrl: string;
    /** The folder of a stopped cluster, whose database is migrated. */
    preparedCluster: string;
  }
}

export const TEMPLATE = 'postern_template';
const MAX_CONNECTIONS = 500;

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const directory = await mkdtemp(join(tmpdir(), 'postern-test-'));
  // So that all of it stays here when the tests run as root: the server then runs as another user.
  await chmod(directory, 0o711);
  const options = { dataDir: join(directory, 'data'), durable: false };
  await createMigrated(options);
  const cluster = join(options.dataDir, 'postgres');
  const preparedCluster = join(directory, 'prepared');
  await promisify(execFile)('cp', ['-a', cluster, preparedCluster]);
  // The servers of all workers connect to this one PostgreSQL, whose usual hundred connections do not suffice for them.
  await appendFile(join(cluster, 'postgresql.conf'), `max_connections = ${MAX_CONNECTIONS}\n`);
  const server = await startEmbedded(options);
  const stop = async (): Promise<void> => {
    await server.stop();
    await rm(directory, { recursive: true, force: true });
  };
  try {
    await makeTemplate(server.url);
  } catch (error) {
    await stop();
    throw error;
  }
  project.provide('databaseUrl', server.url);
  project.provide('preparedCluster', preparedCluster);
  return stop;
}

async function createMigrated(options: EmbeddedOptions): Promise<void> {
  const server = await startEmbedded(options);
  const db = openDatabase({ url: server.url });
  try {
    await migrate(db);
  } finally {
    await db.close();
    await server.stop();
  }
}

async function makeTemplate(serverUrl: string): Promise<void> {
  const admin = openDatabase({ url: serverUrl, poolMax: 1, queryTimeoutMs: 30_000 });
  try {
    await admin.knex.raw(`create database ${TEMPLATE} template postern`);
  } finally {
    await admin.close();
  }
}
