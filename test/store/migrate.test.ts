import { expect, test } from 'vitest';
import { openDatabase } from '../../src/store/database.ts';
import { MigrationError, migrate, migrationNames, pendingMigrations } from '../../src/store/migrate.ts';
import { freshDatabase } from '../support/database.ts';

test('a database gets every migration once, however many servers start together', async () => {
  const fresh = await freshDatabase('');
  const servers = Array.from({ length: 4 }, () => openDatabase({ url: fresh.url }));
  try {
    expect(await pendingMigrations(fresh.db)).toEqual(migrationNames());
    const done = await Promise.all(servers.map(migrate));
    expect(done.flat()).toEqual(migrationNames());
    expect(await pendingMigrations(fresh.db)).toEqual([]);
    expect(await migrate(fresh.db)).toEqual([]);
  } finally {
    await Promise.all(servers.map((server) => server.close()));
    await fresh.close();
  }
});

test('the lock row that a killed run left behind stops nobody', async () => {
  const fresh = await freshDatabase();
  try {
    await fresh.db.knex('postern_migrations_lock').update({ is_locked: 1 });
    expect(await migrate(fresh.db)).toEqual([]);
    expect(await fresh.db.knex('postern_migrations_lock').select('is_locked')).toEqual([{ is_locked: 0 }]);
  } finally {
    await fresh.close();
  }
});

test('a database newer than the program is refused with the reason', async () => {
  const fresh = await freshDatabase();
  try {
    await fresh.db.knex('postern_migrations').insert({ name: '9999-future.sql', batch: 9 });
    const newer = new MigrationError(
      'The database is newer than this program: it has 9999-future.sql, unknown here. Run the version that made it, or a newer one.',
    );
    await expect(migrate(fresh.db)).rejects.toEqual(newer);
    await expect(pendingMigrations(fresh.db)).rejects.toEqual(newer);
  } finally {
    await fresh.close();
  }
});
