/** For commands that work on a database and end: opens one that is ready, and closes it whatever happens. They make and migrate none. */

import { openReadyStore, type Store } from '../server/store.ts';
import { createTelemetry } from '../telemetry/telemetry.ts';
import type { Arguments } from './arguments.ts';
import { type Loaded, loadOrRefuse } from './configuration.ts';

/** Rejects with a DatabaseNotReadyError when there is no database, or its schema is not this program's. */
export async function withStore<T>(args: Arguments, work: (store: Store, loaded: Loaded) => Promise<T>): Promise<T> {
  const loaded = loadOrRefuse(args);
  const store = await openReadyStore(loaded.config, loaded.secrets, createTelemetry({ level: 'warn' }));
  try {
    return await work(store, loaded);
  } finally {
    await store.close();
  }
}
