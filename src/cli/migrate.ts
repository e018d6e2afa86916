import { openStore } from '../server/store.ts';
import { migrate } from '../store/migrate.ts';
import { createTelemetry } from '../telemetry/telemetry.ts';
import type { Arguments } from './arguments.ts';
import { loadOrRefuse } from './configuration.ts';

/** Brings the database to this version, grants a role the rights of a server if one is named, and prints what was done. Makes an embedded database if there is none. */
export async function migrateCommand(args: Arguments): Promise<number> {
  const { config, secrets } = loadOrRefuse(args);
  const store = await openStore(config, secrets, createTelemetry({ level: 'warn' }));
  try {
    const done = await migrate(store.db, undefined, args.value('grant-to'));
    process.stdout.write(done.length === 0 ? 'The database is up to date.\n' : `Migrated: ${done.join(', ')}.\n`);
    return 0;
  } finally {
    await store.close();
  }
}
