/** How many active keys an owner may have. */

import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { MAX_ACTIVE_KEYS } from '../../src/iam/api-keys/quota.ts';
import { type Harness, outcome, type Person, type Reply, startHarness, text } from './harness.ts';

// Thousands of rows, on machines that are busy.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

let h: Harness;
let boss: Person;
beforeAll(async () => {
  h = await startHarness();
  for (const id of ['acme', 'globex'])
    await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id, name: id } });
  boss = await h.person('acme', ['tenant-admin']);
});
afterAll(async () => {
  await h?.close();
});

const KEYS = '/v1/iam/api-keys';
let made = 0;

interface Seeded {
  readonly expires?: string;
  readonly revoked?: boolean;
}

/** Keys made behind the API's back, which then has not counted the owner's. @param owner undefined = the tenant itself */
async function seed(owner: Person | undefined, count: number, { expires = '30 days', revoked = false }: Seeded = {}) {
  const first = made + 1;
  made += count;
  await h.db.query({
    text: `insert into api_keys (id, tenant_id, user_id, description, scopes, resource_constraints, digest, prefix, last_four, created_by,
        expires_at, revoked_at)
      select 'key_' || lpad(n::text, 26, '0'), 'acme', $3, 'seeded', '{chat:write}', '{}', sha256(n::text::bytea), 'psk_', 'abcd', 'test',
        clock_timestamp() + $4::interval, case when $5::boolean then clock_timestamp() end
      from generate_series($1::int, $2::int) n`,
    values: [first, made, owner?.id ?? null, expires, revoked],
  });
  await h.db
    .knex('key_counts')
    .where({ owner: owner?.id ?? 'acme' })
    .delete();
  return Array.from({ length: count }, (_, i) => `key_${String(first + i).padStart(26, '0')}`);
}

const create = (as: string, body: object = {}): Promise<Reply> =>
  h.api('POST', KEYS, { as, body: { description: 'k', scopes: ['chat:write'], expires_in_days: 1, ...body } });

async function outcomes(replies: readonly Promise<Reply>[]): Promise<readonly string[]> {
  return (await Promise.all(replies)).map(outcome).toSorted();
}

describe('an owner has a bounded number of active keys:', () => {
  test('a user, 1,000; concurrent creations get only the last one, and expired and revoked keys do not count', async () => {
    const ada = await h.person('acme', ['developer']);
    await seed(ada, MAX_ACTIVE_KEYS.user - 1);
    await seed(ada, 20, { expires: '-1 day' });
    await seed(ada, 20, { revoked: true });
    const replies = await outcomes(Array.from({ length: 8 }, () => create(ada.token)));
    expect(replies).toEqual(['201', ...Array.from({ length: 7 }, () => '409 quota_exceeded')]);
    const refused = await create(ada.token);
    expect([outcome(refused), refused.headers['x-should-retry']]).toEqual(['409 quota_exceeded', 'false']);
    const bob = await h.person('acme', ['developer']);
    expect(outcome(await create(bob.token))).toBe('201');
    expect(outcome(await create(boss.token))).toBe('201');
  });

  test("an administrator's key for the user counts, and the revocation of a key frees a place", async () => {
    const ada = await h.person('acme', ['developer']);
    const [first] = await seed(ada, MAX_ACTIVE_KEYS.user);
    expect(outcome(await create(boss.token, { user_id: ada.id }))).toBe('409 quota_exceeded');
    expect(outcome(await h.api('DELETE', `${KEYS}/${first}`, { as: ada.token }))).toBe('204');
    expect(await outcomes([create(ada.token), create(boss.token, { user_id: ada.id })])).toEqual([
      '201',
      '409 quota_exceeded',
    ]);
  });

  test('keys that ended free their places, for as many concurrent creations', async () => {
    const ada = await h.person('acme', ['developer']);
    const seeded = await seed(ada, MAX_ACTIVE_KEYS.user - 1);
    expect(outcome(await create(ada.token))).toBe('201');
    for (const id of seeded.slice(0, 2)) await h.api('DELETE', `${KEYS}/${id}`, { as: ada.token });
    await h.db
      .knex('api_keys')
      .where({ id: seeded[2] })
      .update({ expires_at: h.db.knex.raw('clock_timestamp()') });
    const refused = Array.from({ length: 3 }, () => '409 quota_exceeded');
    const replies = await outcomes(Array.from({ length: 6 }, () => create(ada.token)));
    expect(replies).toEqual(['201', '201', '201', ...refused]);
  });

  test('a deletion of the owner leaves no number of its keys', async () => {
    const ada = await h.person('acme', ['developer']);
    const numbers = () => h.db.knex('key_counts').where({ owner: ada.id }).select('active', 'created');
    for (const key of [await create(ada.token), await create(ada.token)]) expect(outcome(key)).toBe('201');
    expect(await numbers()).toEqual([{ active: 2, created: 2 }]);
    expect(outcome(await h.api('DELETE', `/v1/iam/users/${ada.id}`, { as: boss.token }))).toBe('204');
    expect(await numbers()).toEqual([]);
  });

  test('an expired key that is prolonged counts as another one, an active one that is prolonged does not', async () => {
    const ada = await h.person('acme', ['developer']);
    const active = await seed(ada, MAX_ACTIVE_KEYS.user - 1);
    const expired = await seed(ada, 3, { expires: '-1 day' });
    const prolong = (id: string | undefined) =>
      h.api('PUT', `${KEYS}/${id}`, { as: ada.token, body: { expires_in_days: 9 } });
    expect(await outcomes(expired.map(prolong))).toEqual(['200', '409 quota_exceeded', '409 quota_exceeded']);
    expect(outcome(await prolong(active[0]))).toBe('200');
  });

  test("a tenant itself has at most 100,000, counted apart from its users'", async () => {
    const { rows } = await h.db.knex.raw<{ rows: { own: number }[] }>(
      `select count(*)::int as own from api_keys where user_id is null and tenant_id = 'acme'`,
    );
    // Neither the feed nor a search needs these rows.
    await h.db.knex.raw('alter table api_keys disable trigger user');
    await h.db.knex.raw('drop index api_keys_by_lexeme');
    for (let left = MAX_ACTIVE_KEYS.tenant - 2 - (rows[0]?.own ?? 0); left > 0; left -= 5_000)
      await seed(undefined, Math.min(left, 5_000));
    await h.db.knex.raw('alter table api_keys enable trigger user');
    const replies = await outcomes(Array.from({ length: 6 }, () => create(boss.token)));
    expect(replies).toEqual(['201', '201', ...Array.from({ length: 4 }, () => '409 quota_exceeded')]);
    const bob = await h.person('acme', ['developer']);
    expect(outcome(await create(bob.token))).toBe('201');
    const elsewhere = { description: 'k', scopes: ['chat:write'], expires_in_days: 1 };
    expect(outcome(await h.api('POST', KEYS, { as: h.root.token, tenant: 'globex', body: elsewhere }))).toBe('201');
  });

  test('the refusal is in the audit log, and a rotation needs no place', async () => {
    const ada = await h.person('acme', ['developer']);
    const key = await create(ada.token);
    await seed(ada, MAX_ACTIVE_KEYS.user - 1);
    expect(outcome(await create(ada.token))).toBe('409 quota_exceeded');
    const rows = (await h.audit('api_key.create')).filter((row) => row['actor_id'] === ada.id);
    expect(rows.map((row) => row['result'])).toEqual(['success', 'refused']);
    expect(outcome(await h.api('POST', `${KEYS}/${text(key.json, 'id')}/rotate`, { as: ada.token, body: {} }))).toBe(
      '200',
    );
  });

  test('an answer lost at the last place is given again', async () => {
    const ada = await h.person('acme', ['developer']);
    await seed(ada, MAX_ACTIVE_KEYS.user - 1);
    const again = () =>
      h.api('POST', KEYS, {
        as: ada.token,
        headers: { 'idempotency-key': 'the-last' },
        body: { description: 'k', scopes: ['chat:write'], expires_in_days: 1 },
      });
    const first = await again();
    const second = await again();
    expect([outcome(first), outcome(second), second.json['id']]).toEqual(['201', '201', first.json['id']]);
  });
});

test('the constraints of a key take at most 64 KiB, at its creation and later', async () => {
  const ada = await h.person('acme', ['developer']);
  const names = (bytes: number, prefix: string) =>
    Array.from({ length: Math.floor(bytes / 250) }, (_, i) => `${prefix}${i}-`.padEnd(247, 'x'));
  const fits = { models: names(40_000, 'm'), collections: names(20_000, 'c') };
  const tooMuch = { models: names(45_000, 'm'), collections: names(22_000, 'c') };
  const key = await create(ada.token, { resource_constraints: fits });
  expect(outcome(key)).toBe('201');
  const refused = await create(ada.token, { resource_constraints: tooMuch });
  expect([outcome(refused), refused.json['errors']]).toMatchObject([
    '422 invalid_field',
    [{ path: '/resource_constraints' }],
  ]);
  const changed = await h.api('PUT', `${KEYS}/${text(key.json, 'id')}`, {
    as: ada.token,
    body: { resource_constraints: tooMuch },
  });
  expect(outcome(changed)).toBe('422 invalid_field');
});
