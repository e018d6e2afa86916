import { openStore } from '../server/store.ts';
import { migrate } from '../store/migrate.ts';
import { startLogging } from '../telemetry/log.ts';
import type { Arguments } from './arguments.ts';
import { loadOrRefuse } from './configuration.ts';
import { printed } from './output.ts';

/**
 * Migrates the database to this version, grants the role of `--grant-to` the rights of a server, and prints the
 * migrations. Creates an embedded database if there is none.
 */
export async function migrateCommand(args: Arguments): Promise<number> {
  const { config, secrets } = await loadOrRefuse(args);
  const store = await openStore(config, secrets, startLogging({ level: 'warn' }));
  try {
    const done = await migrate(store.db, undefined, args.value('grant-to'));
    return printed(done.length === 0 ? 'The database is up to date.\n' : `Migrated: ${done.join(', ')}.\n`);
  } finally {
    await store.close();
  }
}
