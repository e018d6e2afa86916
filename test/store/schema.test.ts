/** docs/schema.sql shows the database as the migrations leave it. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { dumpSchema } from '../../scripts/lib/database-schema.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';

const schema = readFileSync(join(import.meta.dirname, '..', '..', 'docs', 'schema.sql'), 'utf8');

let migrated: FreshDatabase;
beforeAll(async () => {
  migrated = await freshDatabase();
});
afterAll(() => migrated?.close());

test('docs/schema.sql is the schema of a migrated database; `npm run schema` writes it', async () => {
  expect(await dumpSchema(migrated.db)).toBe(schema);
});

test('an empty database has the same schema after docs/schema.sql ran on it', async () => {
  const empty = await freshDatabase('');
  try {
    await empty.db.query({ text: schema });
    expect(await dumpSchema(empty.db)).toBe(schema);
  } finally {
    await empty.close();
  }
});

test.each([
  ['a column', 'alter table users add column nickname text'],
  ['a default', "alter table users alter column name set default 'x'"],
  ['an index', 'create index extra on users (name)'],
  ['a trigger', 'drop trigger users_feed on users'],
  ['a constraint', "alter table users add constraint extra check (name <> 'x')"],
  ['a setting of a function', 'alter function metering_settle set enable_seqscan = on'],
  ['the storage of a column', 'alter table audit_seals alter column row_digests set storage main'],
])('a change of %s shows in the dump', async (_, change) => {
  const changed = await freshDatabase();
  try {
    await changed.db.query({ text: change });
    expect(await dumpSchema(changed.db)).not.toBe(schema);
  } finally {
    await changed.close();
  }
});

test('an object that the dump cannot show makes it fail', async () => {
  const changed = await freshDatabase();
  try {
    await changed.db.query({ text: 'create view names as select name from users' });
    await expect(dumpSchema(changed.db)).rejects.toThrow('cannot write the relation names');
  } finally {
    await changed.close();
  }
});
