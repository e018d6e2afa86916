/**
 * Before all tests: one embedded PostgreSQL for the run, with a migrated database that every test's own is a copy of.
 */

import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { openDatabase } from '../../src/store/database.ts';
import { type EmbeddedOptions, startEmbedded } from '../../src/store/embedded/embedded.ts';
import { migrate } from '../../src/store/migrate.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The server's own database, for making others. */
    databaseUrl: string;
  }
}

export const TEMPLATE = 'postern_template';
const MAX_CONNECTIONS = 500;

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const directory = await mkdtemp(join(tmpdir(), 'postern-test-'));
  // So that all of it stays here when the tests run as root: the server then runs as another user.
  await chmod(directory, 0o711);
  const options = { dataDir: join(directory, 'data'), durable: false };
  await allowConnections(options);
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
  return stop;
}

/**
 * The servers of all workers connect to this one PostgreSQL, whose usual hundred connections do not suffice for them.
 */
async function allowConnections(options: EmbeddedOptions): Promise<void> {
  const server = await startEmbedded(options);
  const admin = openDatabase({ url: server.url, poolMax: 1 });
  try {
    await admin.knex.raw(`alter system set max_connections = ${MAX_CONNECTIONS}`);
  } finally {
    await admin.close();
    await server.stop();
  }
}

async function makeTemplate(serverUrl: string): Promise<void> {
  const admin = openDatabase({ url: serverUrl, queryTimeoutMs: 30_000 });
  const template = openDatabase({ url: serverUrl.replace('/postern?', `/${TEMPLATE}?`) });
  try {
    await admin.knex.raw(`create database ${TEMPLATE}`);
    await migrate(template);
  } finally {
    await template.close();
    await admin.close();
  }
}
