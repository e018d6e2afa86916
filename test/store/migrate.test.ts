import { readFile } from 'node:fs/promises';
import { expect, onTestFinished, test } from 'vitest';
import { openDatabase } from '../../src/store/database.ts';
import {
  additiveMigrations,
  MigrationError,
  migrate,
  migrationNames,
  schemaDifference,
} from '../../src/store/migrate.ts';
import { freshDatabase } from '../support/database.ts';
import { newerMigrations } from '../support/newer-migrations.ts';

test('a database gets every migration once, also if several servers start at once', async () => {
  const fresh = await freshDatabase('');
  const servers = Array.from({ length: 4 }, () => openDatabase({ url: fresh.url }));
  try {
    expect(await schemaDifference(fresh.db)).toEqual({ kind: 'missing' });
    const done = await Promise.all(servers.map((server) => migrate(server)));
    expect(done.flat()).toEqual(migrationNames());
    expect(await schemaDifference(fresh.db)).toBeUndefined();
    expect(await migrate(fresh.db)).toEqual([]);
  } finally {
    await Promise.all(servers.map((server) => server.close()));
    await fresh.close();
  }
});

test('the lock row of a killed run does not block migrations', async () => {
  const fresh = await freshDatabase();
  try {
    await fresh.db.knex('postern_migrations_lock').update({ is_locked: 1 });
    expect(await migrate(fresh.db)).toEqual([]);
    expect(await fresh.db.knex('postern_migrations_lock').select('is_locked')).toEqual([{ is_locked: 0 }]);
  } finally {
    await fresh.close();
  }
});

test('a database newer than the program is rejected with the reason', async () => {
  const fresh = await freshDatabase();
  try {
    await fresh.db.knex('postern_migrations').insert({ name: '9999-future.sql', batch: 9 });
    const newer = new MigrationError(
      'The database is newer than this program: it has 9999-future.sql, which this version does not know. Run the version that migrated the database, or a newer one.',
    );
    await expect(migrate(fresh.db)).rejects.toEqual(newer);
    expect(await schemaDifference(fresh.db)).toEqual({ kind: 'newer', unknown: ['9999-future.sql'] });
    // The difference of a newer database does not name its missing migrations.
    await fresh.db.knex('postern_migrations').where({ name: migrationNames()[3] }).delete();
    expect(await schemaDifference(fresh.db)).toMatchObject({ kind: 'newer' });
  } finally {
    await fresh.close();
  }
});

test('a database server that is too old is rejected before a migration runs', async () => {
  const fresh = await freshDatabase('');
  onTestFinished(() => fresh.close());
  // Found before PostgreSQL's own function.
  await fresh.db.knex.raw(`
    create schema old;
    create function old.current_setting(text) returns text language sql as $$ select '13.23 (Debian 13.23-1)' $$`);
  const options = encodeURIComponent('-c search_path=old,pg_catalog,public');
  const db = openDatabase({ url: `${fresh.url}&options=${options}` });
  onTestFinished(() => db.close());
  const tooOld = new MigrationError(
    'The database server is PostgreSQL 13.23 (Debian 13.23-1). Postern needs PostgreSQL 14 or later. Upgrade the server first.',
  );
  await expect(migrate(db)).rejects.toEqual(tooOld);
  expect(await schemaDifference(fresh.db)).toEqual({ kind: 'missing' });
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

test('a program accepts a database that is ahead only by additive migrations, and does not change it', async () => {
  const fresh = await freshDatabase();
  onTestFinished(() => fresh.close());
  const newer = await newerMigrations({ '9001-more.sql': '-- Additive: one table more.\ncreate table more (id int);' });
  onTestFinished(() => newer.remove());
  expect(await migrate(fresh.db, newer.folder)).toEqual(['9001-more.sql']);
  const before = await fresh.db.knex('postern_migrations').orderBy('id');
  expect(await schemaDifference(fresh.db)).toBeUndefined();
  expect(await migrate(fresh.db)).toEqual([]);
  expect(await fresh.db.knex('postern_migrations').orderBy('id')).toEqual(before);
  // The newer program finds its database unchanged.
  expect(await migrate(fresh.db, newer.folder)).toEqual([]);
});

test('a program rejects a database that is ahead by a migration that is not additive', async () => {
  const fresh = await freshDatabase();
  onTestFinished(() => fresh.close());
  const newer = await newerMigrations({
    '9001-more.sql': '-- Additive: one table more.\ncreate table more (id int);',
    '9002-less.sql': '-- Breaking: the table is gone.\ndrop table more;',
  });
  onTestFinished(() => newer.remove());
  await migrate(fresh.db, newer.folder);
  const unknown = ['9001-more.sql', '9002-less.sql'];
  expect(await schemaDifference(fresh.db)).toEqual({ kind: 'newer', unknown });
  await expect(migrate(fresh.db)).rejects.toThrow(
    'The database is newer than this program: it has 9001-more.sql, 9002-less.sql',
  );
});

test('a database that is ahead by additive migrations, and lacks another, is newer', async () => {
  const fresh = await freshDatabase();
  onTestFinished(() => fresh.close());
  const newer = await newerMigrations({ '9001-more.sql': '-- Additive: one table more.\ncreate table more (id int);' });
  onTestFinished(() => newer.remove());
  await migrate(fresh.db, newer.folder);
  await fresh.db.knex('postern_migrations').where({ name: migrationNames()[3] }).delete();
  expect(await schemaDifference(fresh.db)).toEqual({ kind: 'newer', unknown: ['9001-more.sql'] });
});

/** The last one that was written before migrations declared what they do to older servers. */
const LAST_UNDECLARED = '0027-recent-decisions.sql';
/**
 * Statements after which a server that does not know them could no longer read or write. A check or a `not
 * null` that goes rejects nothing that it wrote, and without an index it reads more slowly.
 */
const NOT_ADDITIVE =
  /\b(?:drop(?!\s+constraint\s+\w+_(?:check|fkey)\b|\s+index\b|\s+not\s+null\b)|rename|(?<!after\s+)truncate|delete\s+from|set\s+not\s+null|alter\s+column\s+\S+\s+(?:set\s+data\s+)?type)\b/i;

/** No older server calls a function that the migration makes. */
const NEW_FUNCTION = /^create function [\s\S]*?\$\$[\s\S]*?\$\$/gm;

test('each new migration declares whether it is additive, and an additive one removes nothing that older servers use', async () => {
  const declared = migrationNames().filter((name) => name > LAST_UNDECLARED);
  const additive = additiveMigrations();
  for (const name of declared) {
    const text = await readFile(new URL(`../../src/store/migrations/${name}`, import.meta.url), 'utf8');
    expect(text.split('\n')[0], name).toMatch(/^-- (?:Additive|Breaking): \S/);
    const run = text.replaceAll(/--.*/g, '').replaceAll(NEW_FUNCTION, '');
    if (additive.includes(name)) expect(run, name).not.toMatch(NOT_ADDITIVE);
  }
  expect('alter table users rename column a to b').toMatch(NOT_ADDITIVE);
  const replaced = 'create or replace function f() returns void as $$ delete from users $$;';
  expect(replaced.replaceAll(NEW_FUNCTION, '')).toMatch(NOT_ADDITIVE);
  expect('alter table users drop constraint users_pkey').toMatch(NOT_ADDITIVE);
  expect('alter table users drop constraint users_source_check').not.toMatch(NOT_ADDITIVE);
  expect('alter table users alter column a type text').toMatch(NOT_ADDITIVE);
  expect('alter table users alter column a set not null').toMatch(NOT_ADDITIVE);
  expect('alter table users alter column a drop not null').not.toMatch(NOT_ADDITIVE);
  expect('truncate users').toMatch(NOT_ADDITIVE);
  expect('create trigger t after truncate on users').not.toMatch(NOT_ADDITIVE);
});
