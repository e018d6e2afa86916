/** One-time tokens name the principal that had them made. */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { migrate } from '../../src/store/migrate.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';

let fresh: FreshDatabase;
beforeAll(async () => {
  fresh = await freshDatabase();
  await fresh.db.knex('tenants').insert({ id: 'acme', name: 'Acme' });
  await fresh.db.knex('users').insert({ id: 'usr_a', tenant_id: 'acme', name: 'Ada' });
});
afterAll(() => fresh.close());

const token = {
  digest: Buffer.alloc(32, 1),
  user_id: 'usr_a',
  purpose: 'password_setup',
  expires_at: new Date(Date.now() + 60_000),
};

test('the migration removes the tokens from before it', async () => {
  await fresh.db.knex.raw(`alter table one_time_tokens drop constraint one_time_tokens_maker, drop column maker_kind,
    drop column maker_tenant_id, drop column maker_id, drop column maker_address, drop column made_at`);
  await fresh.db.knex('postern_migrations').where({ name: '0020-token-makers.sql' }).delete();
  await fresh.db.knex('one_time_tokens').insert(token);
  expect(await migrate(fresh.db)).toEqual(['0020-token-makers.sql']);
  expect(await fresh.db.knex('one_time_tokens').select()).toEqual([]);
});

test.each([
  [{ maker_kind: 'user', maker_tenant_id: 'acme' }],
  [{ maker_kind: 'api_key', maker_id: 'key_a' }],
  [{ maker_kind: 'system', maker_id: 'usr_a', maker_tenant_id: 'acme' }],
  [{ maker_kind: 'nobody' }],
  [{ maker_id: 'usr_a', maker_tenant_id: 'acme' }],
])('the database refuses a token with half a maker: %j', async (maker) => {
  await expect(fresh.db.knex('one_time_tokens').insert({ ...token, ...maker })).rejects.toThrow(/check constraint/);
});
