/** For commands that work on the database and end: opens it, and closes it whatever happens. */

import { openStore, type Store } from '../server/store.ts';
import { createTelemetry } from '../telemetry/telemetry.ts';
import type { Arguments } from './arguments.ts';
import { type Loaded, loadOrRefuse } from './configuration.ts';

export async function withStore<T>(args: Arguments, work: (store: Store, loaded: Loaded) => Promise<T>): Promise<T> {
  const loaded = loadOrRefuse(args);
  const store = await openStore(loaded.config, loaded.secrets, createTelemetry({ level: 'warn' }));
  try {
    return await work(store, loaded);
  } finally {
    await store.close();
  }
}
