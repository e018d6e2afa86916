/** Migrates a database's schema with numbered SQL files. Each runs once, and one server migrates at a time. */

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Knex } from 'knex';
import type { Database } from './database.ts';
import { connectionFault, sqlState, statementError } from './faults.ts';
import { grantTo } from './grants.ts';
import { recordAdditive, recordedAdditive } from './meta.ts';
import { endClient } from './pool.ts';

/** This program cannot migrate the schema. The message states the next step. */
export class MigrationError extends Error {
  override readonly name = 'MigrationError';
}

const DIRECTORY = join(import.meta.dirname, 'migrations');
const TABLE = 'postern_migrations';
/** Nothing else in the same database may use this number for an advisory lock. */
const LOCK = 726543481;
const LOCK_TIMEOUT_MS = 60_000;
const WAIT_MS = 1000;
/** `insufficient_privilege`: the migration has run, and the rights of this role are not granted yet. */
const NO_PRIVILEGE = '42501';
/** The oldest PostgreSQL that the statements are written for. */
const OLDEST_SERVER = 14;
/** A migration may rewrite large tables. */
const STATEMENT_TIMEOUT_MS = 3_600_000;

function sourceIn(folder: string): Knex.MigrationSource<string> {
  return {
    getMigrations: async () => migrationNames(folder),
    getMigrationName: (name) => name,
    getMigration: async (name) => ({
      async up(trx) {
        // knex replaces a question mark by a binding, except after a backslash.
        await trx.raw(readFileSync(join(folder, name), 'utf8').replaceAll('?', '\\?'));
      },
      async down() {
        throw new MigrationError('Migrations cannot be undone. Restore a backup instead.');
      },
    }),
  };
}

/**
 * Runs the pending migrations and returns their names. Several servers may call it at once: an advisory lock admits one
 * at a time and ends with its connection, so a killed server leaves no partial migration and no lock. A schema that is
 * newer than this program only by additive migrations stays unchanged. Rejects with a MigrationError if it is newer in
 * another way, and with a Fault if the database is unreachable.
 * @param folder of the migrations; default: this program's
 * @param serverRole role that gets the rights of a server, if servers connect with another role
 */
export async function migrate(
  db: Database,
  folder: string = DIRECTORY,
  serverRole?: string,
): Promise<readonly string[]> {
  const wide = db.reopen({ poolMax: 2, queryTimeoutMs: STATEMENT_TIMEOUT_MS });
  try {
    return await holdingLock(db, async () => {
      const names = await runPending(wide, folder);
      if (serverRole !== undefined) await grantTo(wide, serverRole);
      return names;
    });
  } finally {
    await wide.close();
  }
}

async function runPending(wide: Database, folder: string): Promise<readonly string[]> {
  await refuseOldServer(wide);
  const difference = await schemaDifference(wide, folder);
  if (difference?.kind === 'newer') throw newerError(difference.unknown);
  // knex reports an unknown migration as a lost file.
  if (difference === undefined && (await completed(wide)).length > migrationNames(folder).length) return [];
  const config: Knex.MigratorConfig = { migrationSource: sourceIn(folder), tableName: TABLE };
  // A killed run leaves knex's lock, a row, behind. The advisory lock replaces it.
  await wide.knex.migrate.forceFreeMigrationsLock(config);
  const [, names]: [number, string[]] = await wide.knex.migrate.latest(config);
  // Recorded after the migrations: without the record, an older program refuses to start, which is safe.
  await recordAdditive(wide, additiveMigrations(folder));
  return names;
}

async function refuseOldServer(db: Database): Promise<void> {
  const [row] = await db.query({ text: `select current_setting('server_version') as version` });
  const version = String(row?.['version']);
  if (Number.parseInt(version, 10) >= OLDEST_SERVER) return;
  throw new MigrationError(
    `The database server is PostgreSQL ${version}. Postern needs PostgreSQL ${OLDEST_SERVER} or later. Upgrade the server first.`,
  );
}

/**
 * Waits until another program has migrated the schema to this program's, and this role may read the record of it.
 * Changes nothing. Rejects like `migrate`.
 * @param onWait called once if the schema is not ready
 */
export async function migratedElsewhere(db: Database, onWait: () => void): Promise<void> {
  for (let waited = false; ; waited = true) {
    const difference = await schemaDifference(db).catch((error: unknown) => {
      if (sqlState(error) === NO_PRIVILEGE) return { kind: 'missing' } as const;
      throw error;
    });
    if (difference === undefined) return;
    if (difference.kind === 'newer') throw newerError(difference.unknown);
    if (!waited) onWait();
    await sleep(WAIT_MS);
  }
}

type SchemaDifference =
  | { readonly kind: 'missing' }
  /** `lacks` is never empty. */
  | { readonly kind: 'older'; readonly lacks: readonly string[] }
  /** `unknown` is never empty: migrations of a newer version, or of another program. */
  | { readonly kind: 'newer'; readonly unknown: readonly string[] };

/**
 * Compares the schemas and changes nothing. Migrations that a newer program recorded as additive are no difference.
 * Rejects with a Fault if the database is unreachable.
 * @param folder of the migrations; default: this program's
 * @returns undefined if the schemas do not differ
 */
export async function schemaDifference(
  db: Database,
  folder: string = DIRECTORY,
): Promise<SchemaDifference | undefined> {
  const done = await completed(db);
  const known = migrationNames(folder);
  const unknown = done.filter((name) => !known.includes(name));
  const lacks = known.filter((name) => !done.includes(name));
  if (unknown.length > 0) {
    const additive = lacks.length === 0 ? await recordedAdditive(db) : [];
    return unknown.every((name) => additive.includes(name)) ? undefined : { kind: 'newer', unknown };
  }
  if (done.length === 0) return { kind: 'missing' };
  return lacks.length > 0 ? { kind: 'older', lacks } : undefined;
}

/** A migration declares so that older servers can run and start on its schema. docs/upgrades.md has the rule. */
const ADDITIVE = /^-- Additive: /;

export function additiveMigrations(folder: string = DIRECTORY): readonly string[] {
  return migrationNames(folder).filter((name) => ADDITIVE.test(readFileSync(join(folder, name), 'utf8')));
}

/** @param folder default: this program's */
export function migrationNames(folder: string = DIRECTORY): string[] {
  return readdirSync(folder)
    .filter((name) => /^\d{4}-[a-z0-9-]+\.sql$/.test(name))
    .sort();
}

async function holdingLock<T>(db: Database, work: () => Promise<T>): Promise<T> {
  const client = db.newClient();
  client.on('error', () => undefined);
  await client.connect().catch((error: unknown) => {
    throw connectionFault(error);
  });
  try {
    // In a transaction, because a pooler may give each transaction another server connection.
    await client.query('begin');
    await client.query(`set local lock_timeout = ${LOCK_TIMEOUT_MS}`);
    await client.query('set local idle_in_transaction_session_timeout = 0');
    await client.query('select pg_advisory_xact_lock($1)', [LOCK]).catch((error: unknown) => {
      throw sqlState(error) === '55P03'
        ? new MigrationError(
            `Another server has been migrating this database for more than ${LOCK_TIMEOUT_MS / 1000} s. Wait until it finishes or stop it, then start again.`,
          )
        : statementError(error);
    });
    return await work();
  } finally {
    await endClient(client);
  }
}

function newerError(unknown: readonly string[]): MigrationError {
  return new MigrationError(
    `The database is newer than this program: it has ${unknown.join(', ')}, which this version does not know. Run the version that migrated the database, or a newer one.`,
  );
}

async function completed(db: Database): Promise<readonly string[]> {
  const [table] = await db.query({ text: 'select to_regclass($1) is not null as there', values: [TABLE] });
  if (table?.['there'] !== true) return [];
  const rows = await db.query({ text: `select name from ${TABLE} order by id` });
  return rows.map((row) => String(row['name']));
}
