/** Step 8 of an explanation: why a credential proves no principal, and to whom the server says so. */

import { createHash, randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { tidyUp } from '../../src/iam/auth/upkeep.ts';
import { makeApiKey } from '../../src/identity/api-keys.ts';
import { type Harness, it, type Json, outcome, type Person, rows, text, unique } from './harness.ts';

const ACME = unique('acme');
const GLOBEX = unique('globex');

let h: Harness;
let boss: Person;
let stranger: Person;
/** A user that may request explanations and manages neither keys nor users. */
let reader: Person;
it.beforeAll(async ({ harness }) => {
  h = harness;
  for (const id of [ACME, GLOBEX]) await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id, name: id } });
  boss = await h.person(ACME, ['tenant-admin']);
  stranger = await h.person(GLOBEX, ['tenant-admin']);
  await h.api('POST', '/v1/iam/roles', { as: boss.token, body: { name: 'reader', permissions: ['admin:policies'] } });
  reader = await h.person(ACME, ['reader']);
});

const CHAT = { method: 'POST', path: '/v1/chat/completions', body: '{"model":"m"}' };
const explain = async (body: object, as = boss.token): Promise<Json> => {
  const reply = await h.api('POST', '/v1/iam/explain', { as, body: { ...CHAT, ...body } });
  expect(outcome(reply)).toBe('200');
  return reply.json;
};
const identityStep = ({ steps }: Json): Json => {
  if (!Array.isArray(steps)) throw new Error('no steps');
  return steps[7];
};
const reasonOf = async (body: object, as?: string): Promise<Json> => identityStep(await explain(body, as));

interface Key {
  readonly id: string;
  readonly secret: string;
}
async function makeKey(person = boss, body: object = {}): Promise<Key> {
  const made = await h.api('POST', '/v1/iam/api-keys', {
    as: person.token,
    body: { description: 'k', scopes: ['chat:write'], expires_in_days: 1, ...body },
  });
  return { id: text(made.json, 'id'), secret: text(made.json, 'key') };
}
const rotate = async ({ id }: Key, grace = 0): Promise<string> => {
  const path = `/v1/iam/api-keys/${id}/rotate`;
  return text((await h.api('POST', path, { as: boss.token, body: { grace_seconds: grace } })).json, 'key');
};
const revoke = ({ id }: Key, as = boss.token) => h.api('DELETE', `/v1/iam/api-keys/${id}`, { as });
const unknownKey = (): string => makeApiKey((size) => randomBytes(size)).text;
const later = (days: number): string => new Date(Date.now() + days * 86_400_000).toISOString();

const INSTANT = expect.stringMatching(/^20\d\d-.*Z$/);
const UNKNOWN = { outcome: 'denied', reason: 'unknown', key_id: null, user_id: null, time: null };

describe('to a caller that may manage the key or the user, step 8 says why', () => {
  test('a key was revoked, asked by its secret or by its id', async () => {
    const key = await makeKey();
    await revoke(key);
    const expected = { outcome: 'denied', reason: 'revoked', key_id: key.id, user_id: null, time: INSTANT };
    expect(await reasonOf({ credential: key.secret })).toMatchObject(expected);
    expect(await reasonOf({ subject: key.id })).toMatchObject(expected);
    expect((await explain({ credential: key.secret }))['code']).toBe('invalid_credential');
  });

  test('a key was disabled, until it is enabled', async () => {
    const key = await makeKey();
    const act = (action: string) => h.api('POST', `/v1/iam/api-keys/${key.id}/${action}`, { as: boss.token });
    await act('disable');
    const expected = { outcome: 'denied', reason: 'disabled', key_id: key.id, user_id: null, time: INSTANT };
    expect(await reasonOf({ credential: key.secret })).toMatchObject(expected);
    expect(await reasonOf({ subject: key.id })).toMatchObject(expected);
    await act('enable');
    expect(await reasonOf({ credential: key.secret })).toMatchObject({ outcome: 'passed' });
  });

  test('a key expired', async () => {
    const key = await makeKey();
    expect(await reasonOf({ credential: key.secret, time: later(2) })).toMatchObject({
      reason: 'expired',
      key_id: key.id,
      time: INSTANT,
    });
  });

  test('a secret was rotated, each of them for 30 days after it stopped', async () => {
    const key = await makeKey();
    const second = await rotate(key);
    const third = await rotate(key, 3600);
    const rotated = { outcome: 'denied', reason: 'rotated', key_id: key.id, time: INSTANT };
    expect(await reasonOf({ credential: key.secret })).toMatchObject(rotated);
    expect((await explain({ credential: second }))['code']).toBe('allow');
    expect(await reasonOf({ credential: second, time: new Date(Date.now() + 3_700_000).toISOString() })).toMatchObject(
      rotated,
    );
    await rotate(key);
    expect(await reasonOf({ credential: second })).toMatchObject(rotated);
    expect(await reasonOf({ credential: third })).toMatchObject(rotated);

    await h.db.knex.raw(`update rotated_key_digests set stopped_at = now() - interval '31 days' where key_id = ?`, [
      key.id,
    ]);
    expect(await reasonOf({ credential: key.secret })).toMatchObject(UNKNOWN);
    await tidyUp(h.db);
    const { rows: kept } = await h.db.knex.raw<{ rows: unknown[] }>(
      'select from rotated_key_digests where key_id = ?',
      [key.id],
    );
    expect(kept).toHaveLength(0);
  });

  test('a secret was rotated, also if its key was revoked afterwards', async () => {
    const key = await makeKey();
    const next = await rotate(key);
    const inGrace = await rotate(key, 3600);
    await revoke(key);
    expect(await reasonOf({ credential: key.secret })).toMatchObject({ reason: 'rotated', key_id: key.id });
    expect(await reasonOf({ credential: next })).toMatchObject({ reason: 'revoked', key_id: key.id });
    expect(await reasonOf({ credential: inGrace })).toMatchObject({ reason: 'revoked', key_id: key.id });
  });

  test('an old secret that was imported as a new key belongs to the new key, also after the next rotation', async () => {
    const old = await makeKey();
    await rotate(old);
    expect(await reasonOf({ credential: old.secret })).toMatchObject({ reason: 'rotated', key_id: old.id });
    const digest = createHash('sha256').update(old.secret).digest('hex');
    const shown = {
      prefix: 'psk_old',
      last_four: old.secret.slice(-4),
      description: 'k',
      scopes: ['chat:write'],
      expires_in_days: 1,
    };
    const reply = await h.api('POST', '/v1/iam/api-keys/import', {
      as: h.root.token,
      tenant: ACME,
      body: { keys: [{ digest, ...shown }] },
    });
    const [row] = rows(reply);
    const taken: Key = { id: text(row ?? {}, 'id'), secret: old.secret };
    expect((await explain({ credential: taken.secret }))['code']).toBe('allow');
    expect(await reasonOf({ credential: taken.secret, time: later(2) })).toMatchObject({
      reason: 'expired',
      key_id: taken.id,
    });
    await rotate(taken);
    expect(await reasonOf({ credential: taken.secret })).toMatchObject({ reason: 'rotated', key_id: taken.id });
  });

  test('the checksum of a key is wrong', async () => {
    const key = await makeKey();
    const cut = `${key.secret.slice(0, -1)}${key.secret.endsWith('0') ? '1' : '0'}`;
    expect(await reasonOf({ credential: cut })).toMatchObject({ reason: 'checksum', key_id: null, time: null });
    expect(await reasonOf({ credential: cut }, stranger.token)).toMatchObject({ reason: 'checksum', key_id: null });
  });

  test('no key and no token has the text', async () => {
    for (const credential of ['short', 'eyJhbGciOiJub25lIn0.e30.', boss.token.slice(0, -1), unknownKey()])
      expect(await reasonOf({ credential })).toMatchObject(UNKNOWN);
  });

  test("a key's owner is deactivated", async () => {
    const owner = await h.person(ACME, ['developer']);
    const key = await makeKey(boss, { user_id: owner.id });
    await h.api('POST', `/v1/iam/users/${owner.id}/deactivate`, { as: boss.token });
    const expected = { reason: 'owner_deactivated', user_id: owner.id, time: INSTANT };
    expect(await reasonOf({ credential: key.secret })).toMatchObject({ ...expected, key_id: key.id });
    expect(await reasonOf({ subject: owner.id })).toMatchObject({ ...expected, key_id: null });
    expect(await reasonOf({ credential: owner.token })).toMatchObject({ ...expected, key_id: null });
    await h.api('POST', `/v1/iam/users/${owner.id}/activate`, { as: boss.token });
    expect((await explain({ credential: key.secret }))['code']).toBe('allow');
    expect(await reasonOf({ credential: owner.token })).toMatchObject({ reason: 'session_ended', user_id: owner.id });
  });

  test("a key's owner is suspended by its directory", async () => {
    const owner = await h.person(ACME, ['developer'], 'ldap');
    const key = await makeKey(boss, { user_id: owner.id });
    await h.db.knex.raw(
      `update users set directory = 'corp', directory_id = 'owner', directory_suspension = 'removed', directory_suspended_at = '2026-11-01T00:00:00Z' where id = ?`,
      [owner.id],
    );
    await expect
      .poll(() => reasonOf({ credential: key.secret }))
      .toMatchObject({
        reason: 'owner_deactivated',
        key_id: key.id,
        user_id: owner.id,
        time: '2026-11-01T00:00:00.000Z',
      });
  });

  test('a session ended, to an administrator and to the user', async () => {
    const ada = await h.person(ACME, ['developer']);
    await h.db.knex.raw('update sessions set ended_at = now() where user_id = ?', [ada.id]);
    const expected = { outcome: 'denied', reason: 'session_ended', key_id: null, user_id: ada.id, time: INSTANT };
    await expect.poll(() => reasonOf({ credential: ada.token })).toMatchObject(expected);
    await h.db.knex.raw('delete from sessions where user_id = ?', [ada.id]);
    expect(await reasonOf({ credential: ada.token })).toMatchObject({ ...expected, time: null });
  });

  test('a platform administrator sees the reasons of every tenant', async () => {
    const key = await makeKey(stranger);
    await revoke(key, stranger.token);
    expect(await reasonOf({ credential: key.secret }, h.root.token)).toMatchObject({
      reason: 'revoked',
      key_id: key.id,
    });
  });
});

describe('to every other caller', () => {
  test("another tenant's credential, valid or ended, is explained exactly as one that was never issued", async () => {
    const revoked = await makeKey(stranger);
    await revoke(revoked, stranger.token);
    const rotated = await makeKey(stranger);
    await h.api('POST', `/v1/iam/api-keys/${rotated.id}/rotate`, { as: stranger.token, body: { grace_seconds: 0 } });
    expect(await reasonOf({ credential: rotated.secret }, stranger.token)).toMatchObject({ reason: 'rotated' });
    const good = await makeKey(stranger);
    const person = await h.person(GLOBEX, ['developer']);
    const ended = await h.person(GLOBEX, ['developer']);
    await h.db.knex.raw('update sessions set ended_at = now() where user_id = ?', [ended.id]);

    const unknown = await explain({ credential: unknownKey() });
    expect(identityStep(unknown)).toMatchObject(UNKNOWN);
    for (const credential of [revoked.secret, rotated.secret, good.secret, person.token, ended.token]) {
      expect(await explain({ credential })).toEqual(unknown);
      expect(await explain({ credential, time: later(400) })).toEqual(unknown);
    }
  });

  test("their own tenant's credential is, too, without admin:keys or admin:users", async () => {
    const key = await makeKey();
    await revoke(key);
    const rotated = await makeKey();
    await rotate(rotated);
    const ada = await h.person(ACME, ['developer']);
    await h.db.knex.raw('update sessions set ended_at = now() where user_id = ?', [ada.id]);
    const unknown = await explain({ credential: unknownKey() }, reader.token);
    expect(unknown).toEqual(await explain({ credential: unknownKey() }));
    for (const credential of [key.secret, rotated.secret, ada.token]) {
      expect(await explain({ credential }, reader.token)).toEqual(unknown);
    }
    expect(await explain({ subject: key.id }, reader.token)).toEqual(unknown);
  });

  test('the reasons of their own keys are shown', async () => {
    const key = await makeKey(boss, { user_id: reader.id, scopes: ['admin:policies'] });
    await revoke(key);
    expect(await reasonOf({ credential: key.secret }, reader.token)).toMatchObject({
      reason: 'revoked',
      key_id: key.id,
    });
  });
});

test('a key remembers at most 100 rotated secrets', async () => {
  const key = await makeKey();
  await h.db.knex.raw(
    `insert into rotated_key_digests (digest, key_id, stopped_at)
     select sha256(cast(cast(n as text) as bytea)), :id, now() - n * interval '1 minute' from generate_series(1, 150) n`,
    { id: key.id },
  );
  await rotate(key);
  const { rows: kept } = await h.db.knex.raw<{ rows: unknown[] }>('select from rotated_key_digests where key_id = ?', [
    key.id,
  ]);
  expect(kept).toHaveLength(100);
  expect(await reasonOf({ credential: key.secret })).toMatchObject({ reason: 'rotated' });
});
