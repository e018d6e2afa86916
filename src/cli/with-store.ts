/** Opens a ready database for a command, and closes it at the end. It neither creates nor migrates a database. */

import { openReadyStore, type Store } from '../server/store.ts';
import type { Database } from '../store/database.ts';
import { createTelemetry } from '../telemetry/telemetry.ts';
import type { Arguments } from './arguments.ts';
import { type LoadedConfig, loadOrRefuse } from './configuration.ts';

/** Rejects with a DatabaseNotReadyError if there is no database, or if its schema is not that of this version. */
export async function withStore<T>(
  args: Arguments,
  work: (store: Store, loaded: LoadedConfig) => Promise<T>,
): Promise<T> {
  const loaded = loadOrRefuse(args);
  const store = await openReadyStore(loaded.config, loaded.secrets, createTelemetry({ level: 'warn' }));
  try {
    return await work(store, loaded);
  } finally {
    await store.close();
  }
}

/** Runs `work` on connections whose statements may take longer than those of requests. */
export async function withLongTimeout<T>(
  db: Database,
  options: { readonly queryTimeoutMs: number; readonly poolMax: number },
  work: (longTimeoutDb: Database) => Promise<T>,
): Promise<T> {
  const longTimeoutDb = db.reopen(options);
  try {
    return await work(longTimeoutDb);
  } finally {
    await longTimeoutDb.close();
  }
}

/** For use cases in a process without a credential cache: there is nothing to bring up to date. */
export const NO_CACHE = { feed: { catchUp: async () => undefined }, flush: () => undefined };
