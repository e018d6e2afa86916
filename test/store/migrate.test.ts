import { expect, test } from 'vitest';
import { openDatabase } from '../../src/store/database.ts';
import { MigrationError, migrate, migrationNames, schemaDifference } from '../../src/store/migrate.ts';
import { freshDatabase } from '../support/database.ts';

test('a database gets every migration once, however many servers start together', async () => {
  const fresh = await freshDatabase('');
  const servers = Array.from({ length: 4 }, () => openDatabase({ url: fresh.url }));
  try {
    expect(await schemaDifference(fresh.db)).toEqual({ kind: 'missing' });
    const done = await Promise.all(servers.map(migrate));
    expect(done.flat()).toEqual(migrationNames());
    expect(await schemaDifference(fresh.db)).toBeUndefined();
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
    expect(await schemaDifference(fresh.db)).toEqual({ kind: 'newer', unknown: ['9999-future.sql'] });
    // Of a newer database nothing is said about what it lacks.
    await fresh.db.knex('postern_migrations').where({ name: migrationNames()[3] }).delete();
    expect(await schemaDifference(fresh.db)).toMatchObject({ kind: 'newer' });
  } finally {
    await fresh.close();
  }
});

test('a database that lacks a migration, in the middle too, is older', async () => {
  const fresh = await freshDatabase();
  try {
    const lacks = migrationNames().filter((_name, i, all) => i === 1 || i === all.length - 1);
    await fresh.db.knex('postern_migrations').whereIn('name', lacks).delete();
    expect(await schemaDifference(fresh.db)).toEqual({ kind: 'older', lacks });
  } finally {
    await fresh.close();
  }
});
