import { migrate } from '../store/migrate.ts';
import type { Arguments } from './arguments.ts';
import { withStore } from './with-store.ts';

/** Brings the database to this version and says what was done. */
export async function migrateCommand(args: Arguments): Promise<number> {
  const done = await withStore(args, ({ db }) => migrate(db));
  process.stdout.write(done.length === 0 ? 'The database is up to date.\n' : `Migrated: ${done.join(', ')}.\n`);
  return 0;
}
