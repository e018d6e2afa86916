import { createHash, randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeApiKey } from '../../src/identity/api-keys.ts';
import { readCredential } from '../../src/identity/credential.ts';
import { runs } from '../support/properties.ts';
import { column, type Harness, type Json, outcome, type Person, rows, startHarness, text } from './harness.ts';

let h: Harness;
let boss: Person;
let ada: Person;
beforeAll(async () => {
  h = await startHarness();
  for (const id of ['acme', 'globex'])
    await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id, name: id } });
  boss = await h.person('acme', ['tenant-admin']);
  ada = await h.person('acme', ['developer']);
});
afterAll(async () => {
  await h.close();
});

const KEYS = '/v1/iam/api-keys';
const digestOf = (key: string) => createHash('sha256').update(key).digest('hex');
const foreignKey = () => `sk-old-${randomBytes(24).toString('base64url')}`;
const rowOf = (key: string, more: object = {}) => ({
  digest: digestOf(key),
  prefix: key.slice(0, 8),
  last_four: key.slice(-4),
  description: 'from the old gateway',
  scopes: ['chat:write'],
  expires_in_days: 30,
  ...more,
});
const send = (keys: readonly object[], as = h.root.token, headers = {}) =>
  h.api('POST', `${KEYS}/import`, { as, tenant: 'acme', body: { keys }, headers });
const imported = async (key: string, more: object = {}) => {
  const [row] = rows(await send([rowOf(key, more)]));
  if (row?.['outcome'] !== 'imported') throw new Error(`not imported: ${JSON.stringify(row)}`);
  return text(row, 'id');
};
/** These keys never hold a management permission. */
const proves = async (credential: string) => outcome(await h.api('GET', '/v1/iam/users', { as: credential }));
const PROVED = '403 insufficient_permission';

describe('importing keys', () => {
  test('makes keys that work with the text that their clients have, and show no secret', async () => {
    const [own, tenants] = [foreignKey(), foreignKey()];
    expect(await proves(own)).toBe('401 invalid_credential');
    const labels = { name: 'old CI', metadata: { gateway: 'legacy' } };
    const reply = await send([rowOf(own, { user_id: ada.id, ...labels }), rowOf(tenants, { rate_limit_rpm: 5 })]);
    expect([outcome(reply), reply.json['imported'], column(reply, 'outcome'), column(reply, 'index')]).toEqual([
      '200',
      2,
      ['imported', 'imported'],
      [0, 1],
    ]);
    expect([await proves(own), await proves(tenants)]).toEqual([PROVED, PROVED]);
    const key = await h.api('GET', `${KEYS}/${column(reply, 'id')[0]}`, { as: boss.token });
    expect(key.json).toMatchObject({
      ...labels,
      ...{
        tenant_id: 'acme',
        user_id: ada.id,
        imported: true,
        status: 'active',
        prefix: own.slice(0, 8),
        last_four: own.slice(-4),
      },
    });
    const audited = (await h.audit('api_key.import')).slice(-2);
    expect(audited.map((row) => row['target_id'])).toEqual(column(reply, 'id'));
    expect(audited[0]?.['after']).toMatchObject(labels);
    const everything =
      JSON.stringify(await h.audit()) + (await h.api('GET', KEYS, { as: boss.token })).text + reply.text;
    for (const secret of [own, tenants, digestOf(own), digestOf(tenants)]) expect(everything).not.toContain(secret);
  });

  test('a revoked, expired or rotated key and a key of a deactivated owner are rejected, like issued keys', async () => {
    const revoked = foreignKey();
    await h.api('DELETE', `${KEYS}/${await imported(revoked)}`, { as: boss.token });
    expect(await proves(revoked)).toBe('401 invalid_credential');
    const rotated = foreignKey();
    const id = await imported(rotated);
    const rotate = (grace_seconds: number) =>
      h.api('POST', `${KEYS}/${id}/rotate`, { as: boss.token, body: { grace_seconds } });
    const first = await rotate(3600);
    expect(first.json).toMatchObject({ id, imported: false, key: expect.stringMatching(/^psk_/) });
    expect([await proves(rotated), await proves(text(first.json, 'key'))]).toEqual([PROVED, PROVED]);
    await rotate(0);
    expect(await proves(rotated)).toBe('401 invalid_credential');
    const owner = await h.person('acme', ['developer']);
    const owned = foreignKey();
    await imported(owned, { user_id: owner.id });
    expect(await proves(owned)).toBe(PROVED);
    await h.api('POST', `/v1/iam/users/${owner.id}/deactivate`, { as: boss.token });
    expect(await proves(owned)).toBe('401 invalid_credential');
  });

  test('each row has an outcome of its own, and a rejected row does not prevent the import of the others', async () => {
    const [good, twice, theirs] = [foreignKey(), foreignKey(), foreignKey()];
    await h.api('POST', `${KEYS}/import`, { as: h.root.token, tenant: 'globex', body: { keys: [rowOf(theirs)] } });
    const reply = await send([
      rowOf(good),
      rowOf(twice),
      rowOf(twice),
      rowOf(theirs),
      rowOf(foreignKey(), { digest: 'abc' }),
      rowOf(foreignKey(), { scopes: ['cha*:x'] }),
      rowOf(foreignKey(), { user_id: 'usr_00000000000000000000000000' }),
      rowOf(foreignKey(), { expires_in_days: undefined }),
      rowOf(foreignKey(), { expires_in_days: undefined, expires_at: '2020-01-01T00:00:00Z' }),
      rowOf(good),
    ]);
    expect(rows(reply).map((row) => `${row['outcome']} ${row['code'] ?? ''}`.trim())).toEqual([
      'imported',
      'imported',
      'exists',
      'rejected already_exists',
      ...Array.from({ length: 5 }, () => 'rejected invalid_field'),
      'exists',
    ]);
    const ids = column(reply, 'id');
    expect([ids[2], ids[3], ids[9]]).toEqual([ids[1], null, ids[0]]);
    expect(rows(reply)[4]?.['errors']).toEqual([{ path: '/digest', message: expect.any(String) }]);
    expect([await proves(good), await proves(twice)]).toEqual([PROVED, PROVED]);
    // Upper case is the same digest.
    expect(column(await send([rowOf(good, { digest: digestOf(good).toUpperCase() })]), 'outcome')).toEqual(['exists']);
  });

  test('a digest of a key of our own, also of one in its grace, exists and is not imported again', async () => {
    const made = await h.api('POST', KEYS, {
      as: boss.token,
      body: { description: 'k', scopes: ['chat:read'], expires_in_days: 1 },
    });
    const secret = text(made.json, 'key');
    expect(column(await send([rowOf(secret)]), 'outcome')).toEqual(['exists']);
    await h.api('POST', `${KEYS}/${text(made.json, 'id')}/rotate`, { as: boss.token, body: { grace_seconds: 60 } });
    expect(column(await send([rowOf(secret)]), 'id')).toEqual([text(made.json, 'id')]);
  });

  test('gives no user more than 1,000 active keys', async () => {
    const owner = await h.person('acme', ['developer']);
    await h.db.knex.raw(
      `insert into api_keys (id, tenant_id, user_id, description, digest, prefix, last_four, scopes, created_by)
       select 'key_' || lpad(i::text, 26, '0'), 'acme', :owner, 'k', sha256(i::text::bytea), 'psk_0000', '0000', '{chat:read}', 'test'
       from generate_series(1, 999) i`,
      { owner: owner.id },
    );
    const reply = await send([1, 2, 3].map((n) => rowOf(foreignKey(), n === 2 ? {} : { user_id: owner.id })));
    expect(rows(reply).map((row) => row['code'] ?? row['outcome'])).toEqual(['imported', 'imported', 'quota_exceeded']);
  });

  test('is for platform administrators only', async () => {
    expect(outcome(await send([rowOf(foreignKey())], boss.token))).toBe('403 insufficient_permission');
    expect(outcome(await send([rowOf(foreignKey())], ada.token))).toBe('403 insufficient_permission');
    const key = await h.api('POST', KEYS, {
      as: h.root.token,
      body: { description: 'k', scopes: ['*'], expires_in_days: 1, user_id: h.root.id },
    });
    const reply = await h.api('POST', `${KEYS}/import`, {
      as: text(key.json, 'key'),
      body: { keys: [rowOf(foreignKey())] },
    });
    expect(outcome(reply)).toBe('403 insufficient_permission');
    // The server checks the permission before the body.
    const unread = await h.api('POST', `${KEYS}/import`, { as: boss.token, tenant: 'acme', body: { keys: [{}] } });
    expect(outcome(unread)).toBe('403 insufficient_permission');
  });

  test('takes 1,000 rows, once under an Idempotency-Key, and not one more', async () => {
    const keys = Array.from({ length: 1001 }, foreignKey);
    const all = keys.map((key) => rowOf(key));
    expect(outcome(await send(all))).toBe('422 invalid_field');
    const headers = { 'idempotency-key': 'import-1' };
    const first = await send(all.slice(0, 1000), h.root.token, headers);
    expect([outcome(first), first.json['imported']]).toEqual(['200', 1000]);
    const again = await send(all.slice(0, 1000), h.root.token, headers);
    expect(again.json).toEqual(first.json);
    expect(await proves(keys[999] ?? '')).toBe(PROVED);
    expect((await h.audit('api_key.import')).length).toBeGreaterThanOrEqual(1000);
    // Repeated without the header, the import creates nothing.
    expect((await send(all.slice(0, 1000))).json['imported']).toBe(0);
  });

  test('of two imports of one digest at once, one makes the key', async () => {
    const key = foreignKey();
    const replies = await Promise.all(Array.from({ length: 4 }, () => send([rowOf(key)])));
    const outcomes = replies.flatMap((reply) => column(reply, 'outcome'));
    expect(outcomes.filter((one) => one === 'imported')).toHaveLength(1);
    expect(await proves(key)).toBe(PROVED);
  });
});

describe('a credential of another system', () => {
  test('is rejected unless its exact text was imported: also a part of it, another case, and a text with the same beginning', async () => {
    const key = foreignKey();
    await imported(key);
    const change = fc.oneof(
      fc.nat({ max: key.length - 1 }).map((at) => key.slice(0, at) + key.slice(at + 1)),
      fc
        .tuple(fc.nat({ max: key.length }), fc.constantFrom(...'aZ0-._~+/'))
        .map(([at, one]) => key.slice(0, at) + one + key.slice(at)),
      fc.constantFrom(
        key.toUpperCase(),
        key.toLowerCase(),
        `${key}=`,
        `${key}==`,
        digestOf(key),
        `psk_${key}`,
        `eyJ${key}`,
      ),
    );
    await fc.assert(
      fc.asyncProperty(change, async (text) => {
        if (text !== key) expect(await proves(text)).toBe('401 invalid_credential');
      }),
      { numRuns: runs(60) },
    );
    expect(await proves(key)).toBe(PROVED);
  });

  test('that looks like a psk_ key and has a wrong checksum is refused without a lookup, even if its digest was imported', async () => {
    const { text: ours } = makeApiKey();
    const mistyped = `${ours.slice(0, -1)}${ours.endsWith('0') ? '1' : '0'}`;
    await imported(mistyped);
    const { misses } = h.live.stats().maps.keys;
    expect(await proves(mistyped)).toBe('401 invalid_credential');
    expect(h.live.stats().maps.keys.misses).toBe(misses);
  });

  test('that is a JWT, too short or too long is never looked up as a key', async () => {
    const { misses } = h.live.stats().maps.keys;
    for (const text of ['eyJhbGciOiJub25lIn0.e30.', 'short', 'x'.repeat(1025), 'eyJ0.eyJ1.c2ln']) {
      expect(await proves(text)).toBe('401 invalid_credential');
    }
    expect(h.live.stats().maps.keys.misses).toBe(misses);
  });

  test('that was never valid is looked up with the capacity for unknown credentials, once in ten seconds', async () => {
    const madeUp = foreignKey();
    const form = readCredential(`Bearer ${madeUp}`);
    if (form.kind !== 'api_key') throw new Error(form.kind);
    const before = h.live.stats().maps.keys.misses;
    for (let i = 0; i < 5; i++) expect(await proves(madeUp)).toBe('401 invalid_credential');
    expect(h.live.stats().maps.keys.misses).toBe(before + 1);
  });

  test('gets 503, and no 401, while the database is unreachable and nothing is known of it', async () => {
    const [known, unknown] = [foreignKey(), foreignKey()];
    await imported(known);
    expect(await proves(known)).toBe(PROVED);
    await h.cutDatabase();
    try {
      expect(outcome(await h.api('GET', '/v1/iam/api-keys/key_x', { as: unknown }))).toBe('503 unavailable');
    } finally {
      await h.restoreDatabase();
    }
    const body: Json = (await h.api('GET', '/v1/auth/me', { as: known })).json;
    expect(body['type']).toBe('api_key');
  });
});
