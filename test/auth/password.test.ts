import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { UserId } from '../../src/domain/ids.ts';
import { putPasswordSetup } from '../../src/iam/users/password-queries.ts';
import { makeApiKey } from '../../src/identity/api-keys.ts';
import { makeOneTimeToken, opaqueDigest } from '../../src/identity/opaque-tokens.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { addPerson, auditOf, clear, everythingStored, PASSWORD } from './people.ts';
import { bearer, type Reply, refreshTokenOf, type Stand, startStand } from './stand.ts';

let database: FreshDatabase;
let stand: Stand;
let ada: UserId;

beforeAll(async () => {
  database = await freshDatabase();
  stand = await startStand(database.url, { login: { failuresPerAccount: 3 } });
});
beforeEach(async () => {
  ada = await addPerson(stand.db, { email: 'ada@example.com', tenant: 'acme' });
});
afterEach(async () => {
  await clear(database.db);
  await stand.parts.feed.catchUp();
});
afterAll(async () => {
  await stand.close();
  await database.close();
});

const NEW = 'a sunny afternoon in Lisbon';
const login = (password = PASSWORD): Promise<Reply> =>
  stand.post('/v1/auth/login', { email: 'ada@example.com', password });
const change = (by: Reply, old_password: string, new_password: string): Promise<Reply> =>
  stand.post('/v1/auth/password', { old_password, new_password }, bearer(by));
const reset = (token: string, new_password: string): Promise<Reply> =>
  stand.post('/v1/auth/password/reset', { token, new_password });
const statusOf = async (reply: Reply): Promise<number> => (await stand.get('/v1/auth/me', bearer(reply))).status;

async function setupToken(id: UserId): Promise<string> {
  const { text, digest } = makeOneTimeToken();
  await putPasswordSetup(stand.db.knex, id, digest, { kind: 'system' });
  return text;
}

describe('changing the own password', () => {
  test('makes the new one valid and the old one invalid, and ends all other sessions', async () => {
    const [here, elsewhere] = [await login(), await login()];
    expect(await statusOf(elsewhere)).toBe(200);
    expect((await change(here, PASSWORD, NEW)).status).toBe(204);
    expect(await statusOf(here)).toBe(200);
    expect((await stand.post('/v1/auth/refresh', { refresh_token: refreshTokenOf(here) })).status).toBe(200);
    expect(await statusOf(elsewhere)).toBe(401);
    expect((await stand.post('/v1/auth/refresh', { refresh_token: refreshTokenOf(elsewhere) })).status).toBe(401);
    expect((await login()).status).toBe(401);
    expect((await login(NEW)).status).toBe(200);
    expect((await auditOf(stand.db)).find((line) => line.action === 'auth.password_change')).toEqual(
      expect.objectContaining({ actor: ada, target: ada, tenant: 'acme', result: 'success' }),
    );
    expect(await everythingStored(stand.db)).not.toContain(NEW);
  });

  test('needs the old one, and guesses of it are limited like logins', async () => {
    const here = await login();
    for (let i = 0; i < 3; i++) {
      const reply = await change(here, 'not the old password', NEW);
      expect([reply.status, reply.json['code']]).toEqual([401, 'invalid_credential']);
    }
    expect((await change(here, PASSWORD, NEW)).status).toBe(429);
    expect((await login()).status).toBe(429);
  });

  test('rejects a weak one with its path, and changes nothing', async () => {
    const here = await login();
    const reply = await change(here, PASSWORD, 'too short');
    expect([reply.status, reply.json['errors']]).toEqual([
      422,
      [{ path: '/new_password', message: expect.any(String) }],
    ]);
    expect((await login()).status).toBe(200);
  });

  test('by two at once succeeds for one', async () => {
    const here = await login();
    const replies = await Promise.all([
      change(here, PASSWORD, NEW),
      change(here, PASSWORD, 'a rainy evening in Bergen'),
    ]);
    expect(replies.map((reply) => reply.status).sort((a, b) => a - b)).toEqual([204, 401]);
  });

  test('is closed to API keys', async () => {
    const key = makeApiKey();
    await stand.db.knex('api_keys').insert({
      id: 'key_00000000000000000000000000',
      tenant_id: 'acme',
      user_id: ada,
      description: 'a robot',
      digest: Buffer.from(key.digest, 'hex'),
      prefix: key.prefix,
      last_four: key.lastFour,
      scopes: ['chat:write', 'admin:*'],
      created_by: ada,
    });
    const headers = { authorization: `Bearer ${key.text}` };
    const reply = await stand.post('/v1/auth/password', { old_password: PASSWORD, new_password: NEW }, headers);
    expect([reply.status, reply.json['code']]).toEqual([403, 'insufficient_permission']);
    expect((await stand.get('/v1/auth/me', headers)).json).toEqual({
      id: 'key_00000000000000000000000000',
      type: 'api_key',
      email: null,
      name: 'a robot',
      tenant_id: 'acme',
      source: null,
      roles: [],
      permissions: ['chat:write', 'admin:*'],
      platform_admin: false,
      budgets: [],
    });
  });
});

describe('a one-time token', () => {
  test('sets the password once, ends all sessions and unblocks the account', async () => {
    const here = await login();
    for (let i = 0; i < 3; i++) await login('a wrong guess');
    const token = await setupToken(ada);
    expect(await statusOf(here)).toBe(200);
    expect((await reset(token, NEW)).status).toBe(204);
    expect(await statusOf(here)).toBe(401);
    expect((await login(NEW)).status).toBe(200);
    expect((await reset(token, 'a rainy evening in Bergen')).status).toBe(401);
    expect((await login(NEW)).status).toBe(200);
  });

  test('of a user who never had a password gives the first one', async () => {
    const id = await addPerson(stand.db, { email: 'new@example.com', hash: null });
    expect((await reset(await setupToken(id), NEW)).status).toBe(204);
    expect((await stand.post('/v1/auth/login', { email: 'new@example.com', password: NEW })).status).toBe(200);
  });

  test('used by many requests at once works for one, which sets the password', async () => {
    const token = await setupToken(ada);
    const wanted = Array.from({ length: 8 }, (_, i) => `a rainy evening in Bergen ${i}`);
    const replies = await Promise.all(wanted.map((password) => reset(token, password)));
    expect(replies.map((reply) => reply.status).sort((a, b) => a - b)).toEqual([204, ...Array<number>(7).fill(401)]);
    const winner = wanted[replies.findIndex((reply) => reply.status === 204)];
    expect((await login(winner)).status).toBe(200);
  });

  test('is stored only as a digest', async () => {
    const token = await setupToken(ada);
    const stored = await everythingStored(stand.db);
    expect(stored).toContain(opaqueDigest(token).toString('hex'));
    for (const form of [token, token.slice(4), Buffer.from(token.slice(4), 'base64url').toString('hex')])
      expect(stored).not.toContain(form);
  });

  test('is still good after a password that was refused', async () => {
    const token = await setupToken(ada);
    expect((await reset(token, 'short')).status).toBe(422);
    for (const weak of ['ada@example.com', 'name.ada.example', 'CorrectHorseBatteryStaple1!'])
      expect((await reset(token, weak)).status).toBe(422);
    expect((await reset(token, NEW)).status).toBe(204);
  });

  test('works for an hour', async () => {
    const passes = (interval: string): Promise<unknown> =>
      stand.db.knex.raw('update one_time_tokens set expires_at = expires_at - cast(? as interval)', [interval]);
    const early = await setupToken(ada);
    await passes('59 minutes');
    expect((await reset(early, NEW)).status).toBe(204);
    const late = await setupToken(ada);
    await passes('1 hour');
    expect((await reset(late, NEW)).status).toBe(401);
  });

  test('stops working when another one is issued', async () => {
    const [older, newer] = [await setupToken(ada), await setupToken(ada)];
    expect((await reset(older, NEW)).status).toBe(401);
    expect((await reset(newer, NEW)).status).toBe(204);
  });

  test('sets nothing for a user who is deactivated, or of the directory', async () => {
    const gone = await addPerson(stand.db, { email: 'gone@example.com', status: 'deactivated' });
    const dir = await addPerson(stand.db, { email: 'dir@example.com', source: 'ldap', hash: null });
    for (const id of [gone, dir]) expect((await reset(await setupToken(id), NEW)).status).toBe(401);
  });

  test('that the server did not issue is rejected, in any form', async () => {
    for (const token of ['', 'x', `pst_${'a'.repeat(43)}`]) expect((await reset(token, NEW)).status).toBe(401);
  });
});
