/** The first two steps of a start: a database that answers, and the schema in it. */

import type { Config, Secrets } from '../config/config.ts';
import { type Database, openDatabase } from '../store/database.ts';
import { startEmbedded } from '../store/embedded/embedded.ts';
import { embeddedSecretKey } from '../store/embedded/secret-key.ts';
import { checkSecretKey } from '../store/meta.ts';
import { migrate } from '../store/migrate.ts';
import type { Telemetry } from '../telemetry/telemetry.ts';

export interface Store {
  readonly db: Database;
  /** For another process on the same database. */
  readonly url: string;
  readonly secretKey: string;
  close(): Promise<void>;
}

/** Where the database is and what seals its secrets, when it is not for this process to find out. */
export interface StoreAddress {
  readonly url: string;
  readonly secretKey: string;
}

/** A database that answers. Rejects with an EmbeddedError, or a Fault when a remote one does not answer. */
export async function openStore(config: Config, secrets: Secrets, telemetry: Telemetry, given?: StoreAddress): Promise<Store> {
  const address = given ?? remoteAddress(secrets);
  if (address !== undefined) {
    const db = openDatabase({ url: address.url, poolMax: config.database.poolSize });
    return { ...address, db, close: () => db.close() };
  }
  await using opening = new AsyncDisposableStack();
  const embedded = await startEmbedded({
    dataDir: config.dataDir,
    log: (message) => telemetry.log.info({ part: 'postgresql' }, message),
  });
  opening.defer(() => embedded.stop());
  const secretKey = secrets.secretKey ?? (await embeddedSecretKey(config.dataDir));
  const db = openDatabase({ url: embedded.url, poolMax: config.database.poolSize });
  opening.defer(() => db.close());
  const opened = opening.move();
  return { db, url: embedded.url, secretKey, close: () => opened.disposeAsync() };
}

function remoteAddress({ databaseUrl, secretKey }: Secrets): StoreAddress | undefined {
  if (databaseUrl === undefined) return undefined;
  if (secretKey === undefined) throw new Error('secret-key is required with database.url');
  return { url: databaseUrl, secretKey };
}

/** Brings the schema up to this program and checks the secret key. Rejects with a MigrationError, or a Fault. */
export async function prepareStore(store: Store): Promise<void> {
  await migrate(store.db);
  await checkSecretKey(store.db, store.secretKey);
}
