/** Users with many ended sessions and keys are deactivated and deleted like all others. */

import { beforeEach, expect, test } from 'vitest';
import { transaction } from '../../src/store/transaction.ts';
import { type Harness, it, outcome, type Person, unique } from './harness.ts';

const MANY = 20_000;
const BATCH = 2_000;
const TENANT = unique('acme');

let h: Harness;
let person: Person;
it.beforeAll(async ({ harness }) => {
  h = harness;
  await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id: TENANT, name: TENANT } });
});
beforeEach(async () => {
  person = await h.person(TENANT, ['developer']);
});

/** Behind the API's back, and without a line in the feed. */
async function insert(sql: string): Promise<void> {
  for (let from = 1; from <= MANY; from += BATCH) {
    await transaction(h.db, async (trx) => {
      await trx.raw('set local session_replication_role = replica');
      await trx.raw(sql, { user: person.id, tenant: TENANT, from, to: from + BATCH - 1, name: unique('made') });
    });
  }
}

const call = (method: string, path = '') =>
  h.api(method, `/v1/iam/users/${person.id}${path}`, { as: h.root.token, tenant: TENANT });

test('a user with many expired sessions is deactivated, and the sessions that had not expired end', async () => {
  await insert(
    `insert into sessions (id, user_id, expires_at)
     select :name || n, :user, now() - interval '1 hour' from generate_series(cast(:from as int), cast(:to as int)) n`,
  );
  expect(outcome(await h.api('GET', '/v1/auth/me', { as: person.token }))).toBe('200');
  expect(outcome(await call('POST', '/deactivate'))).toBe('200');
  expect(outcome(await call('POST', '/activate'))).toBe('200');
  expect(outcome(await h.api('GET', '/v1/auth/me', { as: person.token }))).toBe('401 invalid_credential');
});

test('a user with many expired keys is deleted, and no key works or can be made to work again', async () => {
  await insert(
    `insert into api_keys (id, tenant_id, user_id, description, digest, prefix, last_four, scopes, expires_at, created_by)
     select 'key_00end' || lpad(n::text, 21, '0'), :tenant, :user, 'Expired', sha256((:name || n)::bytea), 'psk_0000', '0000', '{models:read}',
       now() - interval '1 hour', 'test'
     from generate_series(cast(:from as int), cast(:to as int)) n`,
  );
  const made = await h.api('POST', '/v1/iam/api-keys', {
    as: h.root.token,
    tenant: TENANT,
    body: { description: 'Works', scopes: ['models:read'], user_id: person.id, expires_in_days: 1 },
  });
  expect(outcome(await call('DELETE'))).toBe('204');
  expect(outcome(await h.api('GET', '/v1/auth/me', { as: String(made.json['key']) }))).toBe('401 invalid_credential');
  const [deleted] = (await h.audit('user.delete')).slice(-1);
  expect(deleted?.['after']).toEqual({ revoked_keys: [made.json['id']] });
});
