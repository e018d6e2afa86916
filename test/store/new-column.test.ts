/** A new column of API keys, added to a copy of the sources: a migration, a member of the entity, and its use. */

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ChangedCopy, copyProject } from '../support/changed-copy.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';

const ROOT = new URL('../..', import.meta.url).pathname;

const MIGRATION = `-- Additive: servers that do not know the column leave it null.
alter table api_keys add column ticket text;
`;

const MEMBER = `
  ticket: column(nullable(text), { accepts: Type.Optional(nullable(title(40))), changes: true }),
  prefix:`;

/** Creates, changes and lists a key with the member, and reads its schemas. */
const PROBE = `
import { randomBytes } from 'node:crypto';
import { createKeyAsSystem, renewKeyAsSystem } from './src/iam/api-keys/as-system.ts';
import { ApiKey, keyChanges, keyResource, newKey } from './src/iam/api-keys/entity.ts';
import { listKeys } from './src/iam/api-keys/list-queries.ts';
import { openDatabase } from './src/store/database.ts';
import { migrate } from './src/store/migrate.ts';

const db = openDatabase({ url: process.env.DATABASE_URL });
await migrate(db);
const tenant = 'acme';
await db.knex('tenants').insert({ id: tenant, name: 'Acme' });
const feed = { catchUp: async () => undefined };
const parts = { db, feed, flush() {}, now: () => Date.now(), random: (size) => randomBytes(size) };
const page = { after: undefined, take: 10 };
const listed = async () => {
  const { rows } = await listKeys(db.knex, { kind: 'one', tenant }, {}, page, new Date());
  return rows.map((row) => keyResource(row, Date.now()).ticket).toReversed();
};
const request = { description: 'build server', scopes: ['chat:read'], expires_in_days: 1 };
const { id } = await createKeyAsSystem(parts, tenant, { ...request, ticket: 'OPS-1' });
await createKeyAsSystem(parts, tenant, request);
const created = await listed();
await renewKeyAsSystem(parts, { tenant_id: tenant, id }, { ticket: 'OPS-2' });
const changed = await listed();
await renewKeyAsSystem(parts, { tenant_id: tenant, id }, { description: 'other' });
const kept = await listed();
await db.close();
console.log(JSON.stringify({
  created, changed, kept,
  shown: ApiKey.properties.ticket.type,
  accepted: newKey.properties.ticket.maxLength,
  changes: keyChanges.properties.ticket.maxLength,
}));
`;

describe('a new column of API keys', () => {
  let copy: ChangedCopy;
  let fresh: FreshDatabase;
  /** The files in which the compiler finds errors. */
  const filesWithErrors = () => [...new Set(copy.compile(['-p', '.']).match(/^src[^(]*/gm))];

  beforeAll(async () => {
    fresh = await freshDatabase();
    copy = await copyProject();
    const { compilerOptions } = JSON.parse(await readFile(join(ROOT, 'tsconfig.json'), 'utf8'));
    // The second compilation checks only what the use of the member changed.
    const options = { ...compilerOptions, incremental: true, tsBuildInfoFile: 'tsbuildinfo' };
    await writeFile(
      copy.file('tsconfig.json'),
      JSON.stringify({ compilerOptions: options, include: ['src/iam/api-keys'] }),
    );
    await copy.add('src/store/migrations/0099-key-tickets.sql', MIGRATION);
    await copy.edit('src/iam/api-keys/entity.ts', ['\n  prefix:', MEMBER]);
  }, 60_000);

  afterAll(async () => {
    await copy.remove();
    await fresh.close();
  });

  test('takes a migration, a member and one more file, which the compiler names', async () => {
    expect(filesWithErrors()).toEqual(['src/iam/api-keys/request.ts']);
    await copy.edit(
      'src/iam/api-keys/request.ts',
      ['  rate_limit_rpm: null,\n', '  rate_limit_rpm: null,\n  ticket: null,\n'],
      [
        '    rate_limit_rpm,\n',
        '    rate_limit_rpm,\n    ticket: request.ticket === undefined ? before.ticket : request.ticket,\n',
      ],
    );
    expect(filesWithErrors()).toEqual([]);
    expect(copy.changed()).toHaveLength(3);
  }, 240_000);

  test('is created, changed, kept, listed and described', async () => {
    await writeFile(copy.file('probe.ts'), PROBE);
    expect(JSON.parse(copy.run(['probe.ts'], { DATABASE_URL: fresh.url }))).toEqual({
      created: ['OPS-1', null],
      changed: ['OPS-2', null],
      kept: ['OPS-2', null],
      shown: ['string', 'null'],
      accepted: 40,
      changes: 40,
    });
  }, 120_000);
});
