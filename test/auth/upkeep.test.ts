/** The upkeep deletes the leftovers of logins, and no row that a decision still needs. */

import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import type { UserId } from '../../src/domain/ids.ts';
import { startUpkeep, tidyUp } from '../../src/iam/auth/upkeep.ts';
import { takesUpkeep } from '../../src/iam/auth/upkeep-queries.ts';
import { putPasswordSetup } from '../../src/iam/users/password-queries.ts';
import { makeOneTimeToken } from '../../src/identity/opaque-tokens.ts';
import { transaction } from '../../src/store/transaction.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { addPerson, clear, PASSWORD } from './people.ts';
import { bearer, type Reply, refreshTokenOf, type Stand, startStand } from './stand.ts';

let database: FreshDatabase;
let stand: Stand;
let ada: UserId;

beforeAll(async () => {
  database = await freshDatabase();
  stand = await startStand(database.url);
});
beforeEach(async () => {
  ada = await addPerson(stand.db, { email: 'ada@example.com' });
});
afterEach(async () => {
  vi.useRealTimers();
  await clear(database.db);
  await stand.parts.feed.catchUp();
});
afterAll(async () => {
  await stand.close();
  await database.close();
});

const login = (password = PASSWORD): Promise<Reply> =>
  stand.post('/v1/auth/login', { email: 'ada@example.com', password });
const refresh = (token: string): Promise<Reply> => stand.post('/v1/auth/refresh', { refresh_token: token });

async function counted(table: string): Promise<number> {
  const [row] = await stand.db.query({ text: `select count(*)::int as n from ${table}` });
  return Number(row?.['n']);
}

/** Sessions with that many used refresh tokens each, over for as long as said. */
async function leftBehind(sessions: number, tokens: number, change: string): Promise<void> {
  await stand.db.knex.raw(
    `with made as (
       insert into sessions (id, user_id, expires_at) select 'ses_' || lpad(cast(n as text), 26, '0'), :ada, now() + interval '1 day'
       from generate_series(1, :sessions) n returning id
     )
     insert into refresh_tokens (digest, session_id, nonce, used_at)
     select sha256(cast(made.id || n as bytea)), made.id, '', now() from made, generate_series(1, :tokens) n`,
    { ada, sessions, tokens },
  );
  await stand.db.knex.raw(`update sessions set ${change} where id like 'ses_00000%'`);
}

test('sessions that ended a day ago are deleted with their tokens, in batches until none is left', async () => {
  const here = await login();
  await leftBehind(450, 3, `ended_at = now() - interval '25 hours'`);
  expect(await tidyUp(stand.db)).toBe(450 + 3 * 450);
  expect([await counted('sessions'), await counted('refresh_tokens')]).toEqual([1, 1]);
  expect((await stand.get('/v1/auth/me', bearer(here))).status).toBe(200);
});

test('a session with more tokens than a batch is deleted too', async () => {
  await leftBehind(1, 12_000, `expires_at = now() - interval '25 hours'`);
  expect(await tidyUp(stand.db)).toBe(12_001);
});

test.each([
  ['that ended within the day', `ended_at = now() - interval '23 hours'`],
  ['that passed its end within the day', `expires_at = now() - interval '23 hours'`],
  ['that lives', `created_at = now() - interval '29 days'`],
])('a session %s stays', async (_name, change) => {
  await leftBehind(1, 1, change);
  expect(await tidyUp(stand.db)).toBe(0);
});

test('the oldest token of an active session is still recognized as reused', async () => {
  const first = refreshTokenOf(await login());
  const second = refreshTokenOf(await refresh(first));
  const third = await refresh(second);
  await stand.db.knex.raw(
    `update refresh_tokens set issued_at = issued_at - interval '29 days' where used_at is not null`,
  );
  await tidyUp(stand.db);
  expect((await refresh(first)).status).toBe(401);
  expect((await stand.get('/v1/auth/me', bearer(third))).status).toBe(401);
});

test('one-time tokens are deleted after their hour, the others stay', async () => {
  const bob = await addPerson(stand.db, { email: 'bob@example.com' });
  for (const id of [ada, bob]) await putPasswordSetup(stand.db.knex, id, makeOneTimeToken().digest, { kind: 'system' });
  await stand.db.knex.raw(`update one_time_tokens set expires_at = now() - interval '1 second' where user_id = ?`, [
    ada,
  ]);
  expect(await tidyUp(stand.db)).toBe(1);
  expect(await stand.db.knex('one_time_tokens').select('user_id')).toEqual([{ user_id: bob }]);
});

test('failures of an ended window are deleted, those of the current window stay', async () => {
  await login('a wrong guess');
  expect(await tidyUp(stand.db)).toBe(0);
  expect(await counted('login_failures')).toBe(3);
  await stand.db.knex.raw(`update login_failures set window_start = window_start - interval '15 minutes 1 second'`);
  expect(await tidyUp(stand.db)).toBe(3);
});

test('an address without a login of its account for 30 days is deleted, the others stay', async () => {
  await login();
  expect(await tidyUp(stand.db)).toBe(0);
  expect(await counted('login_addresses')).toBe(1);
  await stand.db.knex.raw(`update login_addresses set last_login_at = now() - interval '30 days 1 second'`);
  expect(await tidyUp(stand.db)).toBe(1);
  expect(await counted('login_addresses')).toBe(0);
});

test('two servers do not run the upkeep at the same time', async () => {
  await leftBehind(3, 1, `ended_at = now() - interval '25 hours'`);
  await transaction(stand.db, async (trx) => {
    expect(await takesUpkeep(trx, 'usual')).toBe(true);
    expect(await tidyUp(stand.db)).toBe(0);
  });
  expect(await tidyUp(stand.db)).toBe(6);
});

test('a server runs the upkeep every five minutes until it stops', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  const faults: unknown[] = [];
  const stop = startUpkeep(stand.db, (error) => faults.push(error));
  await leftBehind(3, 1, `ended_at = now() - interval '25 hours'`);
  vi.advanceTimersByTime(300_000);
  await expect.poll(() => counted('sessions')).toBe(0);
  await stop();
  await leftBehind(3, 1, `ended_at = now() - interval '25 hours'`);
  vi.advanceTimersByTime(3_600_000);
  expect(vi.getTimerCount()).toBe(0);
  expect(await counted('sessions')).toBe(3);
  expect(faults).toEqual([]);
});
