/** Keys that have ended are bounded: new ones by a rate, old ones by a time. */

import { beforeEach, expect, test } from 'vitest';
import { makeId } from '../../src/domain/ids.ts';
import { endedKeysUpkeep, tidyUp } from '../../src/iam/auth/upkeep.ts';
import { type Harness, it, outcome, type Person, unique } from './harness.ts';

const KEYS = '/v1/iam/api-keys';
const TENANT = unique('acme');
const DAY_MS = 86_400_000;

let h: Harness;
let developer: Person;
it.beforeAll(async ({ harness }) => {
  h = harness;
  await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id: TENANT, name: TENANT } });
});
beforeEach(async () => {
  developer = await h.person(TENANT, ['developer']);
});

interface Made {
  readonly owner: Person | undefined;
  readonly count: number;
  readonly madeAgoMs: number;
  readonly revokedAgoMs?: number;
  readonly expiredAgoMs?: number;
}

/** Behind the API's back, which then has not counted the owner's keys. Returns the id of the first. */
async function insertKeys({ owner, count, madeAgoMs, revokedAgoMs, expiredAgoMs }: Made): Promise<string> {
  const ago = (ms: number | undefined): Date | null => (ms === undefined ? null : new Date(Date.now() - ms));
  const prefix = `${makeId('key', Date.now() - madeAgoMs, new Uint8Array(10)).slice(0, 14)}${unique('').slice(1)}`;
  await h.db.knex.raw(
    `insert into api_keys (id, tenant_id, user_id, description, digest, prefix, last_four, scopes, created_at, revoked_at, expires_at, created_by)
     select :prefix || lpad(n::text, 10, '0'), :tenant, :owner, 'Ended', sha256((:name || n)::bytea), 'psk_0000', '0000', '{chat:read}',
       :made, :revoked, :expired, 'test'
     from generate_series(1, cast(:count as int)) n`,
    {
      ...{ prefix, count, tenant: TENANT, owner: owner?.id ?? null, name: unique('digest') },
      ...{ made: ago(madeAgoMs), revoked: ago(revokedAgoMs), expired: ago(expiredAgoMs) },
    },
  );
  await h.db
    .knex('key_counts')
    .where({ owner: owner?.id ?? TENANT })
    .delete();
  return `${prefix}${'1'.padStart(10, '0')}`;
}

const create = (as: string, owner: Person | null = null) =>
  h.api('POST', KEYS, {
    as,
    tenant: TENANT,
    body: { description: 'New', scopes: ['chat:read'], expires_in_days: 1, user_id: owner?.id ?? null },
  });

test('a user gets 1,000 new keys in 24 hours from all creators together, revoked ones included; then 429 names the time until the next one', async () => {
  await insertKeys({ owner: developer, count: 999, madeAgoMs: DAY_MS - 600_000, revokedAgoMs: 0 });
  expect(outcome(await create(developer.token))).toBe('201');
  const refused = await create(developer.token);
  expect(outcome(refused)).toBe('429 rate_limit_exceeded');
  const seconds = Number(refused.headers['retry-after']);
  expect(seconds).toBeGreaterThan(0);
  expect(seconds).toBeLessThanOrEqual(600);
  expect(outcome(await create(h.root.token, developer))).toBe('429 rate_limit_exceeded');
  const other = await h.person(TENANT, ['developer']);
  expect(outcome(await create(other.token))).toBe('201');
  expect(outcome(await create(h.root.token))).toBe('201');
});

test('keys that were made before count no longer', async () => {
  await insertKeys({ owner: developer, count: 2_000, madeAgoMs: DAY_MS + 60_000, revokedAgoMs: 0 });
  expect(outcome(await create(developer.token))).toBe('201');
});

test('the tenant itself gets 10,000 new keys in an hour', async () => {
  for (let batch = 0; batch < 10; batch++) {
    await insertKeys({ owner: undefined, count: 1_000, madeAgoMs: 3_000_000 + batch, revokedAgoMs: 0 });
  }
  expect(outcome(await create(h.root.token))).toBe('429 rate_limit_exceeded');
  expect(outcome(await create(developer.token))).toBe('201');
});

test('keys that were revoked or have expired for the time that they are kept are removed, and no others', async () => {
  const old = 100 * DAY_MS;
  const shown = async (id: string) =>
    outcome(await h.api('GET', `${KEYS}/${id}`, { as: h.root.token, tenant: TENANT }));
  const keys = { owner: developer, count: 1 };
  const gone = [
    await insertKeys({ ...keys, madeAgoMs: old, revokedAgoMs: 91 * DAY_MS }),
    await insertKeys({ ...keys, madeAgoMs: old + 1, expiredAgoMs: 91 * DAY_MS }),
    await insertKeys({ ...keys, madeAgoMs: old + 2, expiredAgoMs: 91 * DAY_MS, revokedAgoMs: DAY_MS }),
    await insertKeys({ ...keys, madeAgoMs: old + 3, expiredAgoMs: -DAY_MS, revokedAgoMs: 91 * DAY_MS }),
  ];
  await insertKeys({ ...keys, count: 450, madeAgoMs: old + 4, revokedAgoMs: 92 * DAY_MS });
  const kept = [
    await insertKeys({ ...keys, madeAgoMs: old + 5 }),
    await insertKeys({ ...keys, madeAgoMs: old + 6, revokedAgoMs: 89 * DAY_MS }),
    await insertKeys({ ...keys, madeAgoMs: old + 7, expiredAgoMs: 89 * DAY_MS }),
    await insertKeys({ ...keys, madeAgoMs: old + 8, expiredAgoMs: -DAY_MS }),
  ];
  const used = [...gone, ...kept].map((key_id) => ({ key_id, permission: 'chat:read', last_used_on: '2026-01-01' }));
  await h.db.knex('key_permissions_used').insert(used);
  expect(await tidyUp(h.db, undefined, endedKeysUpkeep(90 * DAY_MS))).toBe(gone.length + 450);
  const left = await h.db
    .knex('key_permissions_used')
    .whereIn('key_id', [...gone, ...kept])
    .pluck('key_id');
  expect(new Set(left)).toEqual(new Set(kept));
  expect(await Promise.all(gone.map(shown))).toEqual(gone.map(() => '404 not_found'));
  expect(await Promise.all(kept.map(shown))).toEqual(kept.map(() => '200'));
  expect(await tidyUp(h.db, undefined, endedKeysUpkeep(90 * DAY_MS))).toBe(0);
});
