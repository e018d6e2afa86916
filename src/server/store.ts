/**
 * The first two steps of a start: a database that responds, and its schema. Only this file decides whether a database
 * may be created: `serve`, `demo` and `migrate` open one with `openStore`, every other command with `openReadyStore`.
 */

import { resolve } from 'node:path';
import type { Config, Secrets } from '../config/config.ts';
import { Fault } from '../domain/errors.ts';
import { type Database, openDatabase } from '../store/database.ts';
import { startEmbedded } from '../store/embedded/embedded.ts';
import { NoEmbeddedDatabaseError } from '../store/embedded/error.ts';
import { embeddedSecretKey } from '../store/embedded/secret-key.ts';
import { sqlState } from '../store/faults.ts';
import { checkSecretKey, isSecretKeyOf } from '../store/meta.ts';
import { migrate, migratedElsewhere, schemaDifference } from '../store/migrate.ts';
import { DatabaseNotReadyError } from '../store/not-ready.ts';
import type { Telemetry } from '../telemetry/telemetry.ts';

export interface Store {
  readonly db: Database;
  /** For another process on the same database. */
  readonly url: string;
  /** The key that the database belongs to, once the store is prepared. */
  readonly secretKey: string;
  /** The second valid key while the installation changes its key. */
  readonly otherSecretKey: string | undefined;
  close(): Promise<void>;
}

/** The parts of a process's telemetry that a store uses. A command has a log only. */
type StoreTelemetry = Pick<Telemetry, 'log'> & Partial<Pick<Telemetry, 'tracing' | 'database'>>;

/** The database and its keys, for a child process that does not read them from the settings. */
export interface StoreAddress {
  readonly url: string;
  readonly secretKey: string;
  readonly otherSecretKey?: string | undefined;
}

/**
 * Opens a database, and creates an embedded one that does not exist. For commands that migrate the schema afterwards,
 * and for their child processes. Rejects with an EmbeddedError, or a Fault if a remote database does not respond.
 */
export function openStore(
  config: Config,
  secrets: Secrets,
  telemetry: StoreTelemetry,
  given?: StoreAddress,
): Promise<Store> {
  return open(config, secrets, telemetry, given, true);
}

/**
 * Opens a database that exists and has the schema of this program. It never creates or migrates one. Rejects with a
 * DatabaseNotReadyError that names the database and the command to run, otherwise like `openStore`.
 */
export async function openReadyStore(config: Config, secrets: Secrets, telemetry: StoreTelemetry): Promise<Store> {
  const store = await open(config, secrets, telemetry, undefined, false).catch((error: unknown) => {
    if (error instanceof NoEmbeddedDatabaseError)
      throw new DatabaseNotReadyError(`${error.message} ${embeddedAdvice()}`);
    throw error;
  });
  try {
    await requireSchema(store.db, secrets.databaseUrl === undefined ? config.dataDir : undefined);
    return await withActiveKey(store);
  } catch (error) {
    await store.close();
    throw error;
  }
}

async function open(
  config: Config,
  secrets: Secrets,
  telemetry: StoreTelemetry,
  given: StoreAddress | undefined,
  create: boolean,
): Promise<Store> {
  const address = given ?? remoteAddress(secrets);
  const { tracing, database: reports } = telemetry;
  const options = { poolMax: config.database.poolSize, tracing, reports };
  if (address !== undefined) {
    const db = openDatabase({ ...options, url: address.url });
    return { otherSecretKey: undefined, ...address, db, close: () => db.close() };
  }
  await using opening = new AsyncDisposableStack();
  const embedded = await startEmbedded({
    dataDir: config.dataDir,
    create,
    log: (message) => telemetry.log.info({ part: 'postgresql' }, message),
  });
  opening.defer(() => embedded.stop());
  const secretKey = secrets.secretKey ?? (await embeddedSecretKey(config.dataDir, create));
  const db = openDatabase({ ...options, url: embedded.url });
  opening.defer(() => db.close());
  const opened = opening.move();
  const otherSecretKey = secrets.secretKeyPrevious;
  return { db, url: embedded.url, secretKey, otherSecretKey, close: () => opened.disposeAsync() };
}

/** @param dataDir of an embedded database; undefined: database.url names it */
async function requireSchema(db: Database, dataDir: string | undefined): Promise<void> {
  const where =
    dataDir === undefined ? `${nameOf(db)} (database.url)` : `The database in ${resolve(dataDir)} (data-dir)`;
  const difference = await schemaDifference(db).catch((error: unknown) => {
    if (!(error instanceof Fault) || sqlState(error.cause) !== NO_SUCH_DATABASE) throw error;
    const advice =
      dataDir === undefined ? 'Create it, or correct database.url, and run postern migrate.' : embeddedAdvice();
    throw new DatabaseNotReadyError(`${where} does not exist. ${advice}`);
  });
  switch (difference?.kind) {
    case undefined:
      return;
    case 'missing':
      throw new DatabaseNotReadyError(
        `${where} has no Postern schema. If it is the right database, run postern migrate. This command never creates or migrates a database.`,
      );
    case 'older':
      throw new DatabaseNotReadyError(
        `${where} is older than this program: it lacks ${listed(difference.lacks)}. Run postern migrate first. This command never migrates a database.`,
      );
    case 'newer':
      throw new DatabaseNotReadyError(
        `${where} is newer than this program: it has ${listed(difference.unknown)}, which this version does not know. Run the version that migrated the database, or a newer one.`,
      );
    default:
      difference satisfies never;
  }
}

const NO_SUCH_DATABASE = '3D000';
const MAX_LISTED = 3;

function embeddedAdvice(): string {
  return 'Set data-dir or database.url to an existing one, or run postern migrate or postern serve to make one.';
}

/** Returns host and database as the driver reads them, never the user or the password. */
function nameOf(db: Database): string {
  const { host, port, database } = db.newClient();
  return `The database ${database ?? ''} at ${host.startsWith('/') ? host : `${host}:${port}`}`;
}

function listed(names: readonly string[]): string {
  const more = names.length - MAX_LISTED;
  return `${names.slice(0, MAX_LISTED).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

function remoteAddress({ databaseUrl, secretKey, secretKeyPrevious }: Secrets): StoreAddress | undefined {
  if (databaseUrl === undefined) return undefined;
  if (secretKey === undefined) throw new Error('secret-key is required with database.url');
  return { url: databaseUrl, secretKey, otherSecretKey: secretKeyPrevious };
}

/**
 * Migrates the schema, or waits until `postern migrate` has migrated it, and checks the secret key. Rejects with a
 * MigrationError or a Fault.
 * @returns the store with the key that the database belongs to
 */
export async function prepareStore(store: Store, config: Config, telemetry: StoreTelemetry): Promise<Store> {
  if (config.database.migrate) await migrate(store.db);
  else
    await migratedElsewhere(store.db, () =>
      telemetry.log.warn('waiting until postern migrate has migrated the database'),
    );
  const active = await withActiveKey(store);
  await checkSecretKey(active.db, active.secretKey);
  return active;
}

/**
 * Until `postern rotate-secret-key` has run, the database belongs to `secret-key-previous`, and all servers use that
 * key.
 */
async function withActiveKey(store: Store): Promise<Store> {
  const { secretKey, otherSecretKey } = store;
  if (otherSecretKey === undefined || !(await isSecretKeyOf(store.db, otherSecretKey))) return store;
  return { ...store, secretKey: otherSecretKey, otherSecretKey: secretKey };
}
