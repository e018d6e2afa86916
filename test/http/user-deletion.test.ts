/** Deleting a user whose sessions have many refresh tokens. */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { tidyUp } from '../../src/iam/auth/upkeep.ts';
import { type Harness, outcome, type Person, startHarness, unique } from './harness.ts';

let h: Harness;
beforeAll(async () => {
  h = await startHarness();
});
afterAll(() => h?.close());

const SESSIONS = 'select id, ended_at is not null as ended from sessions where user_id = $1';
const TOKENS = 'select from refresh_tokens r join sessions s on s.id = r.session_id where s.user_id = $1';
const rowsOf = ({ id }: Person, text: string) => h.db.query({ text, values: [id] });

/** Adds refresh tokens to the sessions of a user, as its own refreshes would. */
async function addTokens({ id }: Person, count: number): Promise<void> {
  await h.db.knex.raw(
    `insert into refresh_tokens (digest, session_id, nonce, used_at)
     select sha256(cast(s.id || n as bytea)), s.id, '', now()
     from sessions s, generate_series(1, cast(:count as integer)) n where s.user_id = :id`,
    { id, count },
  );
}

test('a deletion ends the sessions of its user and leaves their refresh tokens to upkeep', async () => {
  const tenant = unique('acme');
  await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id: tenant, name: tenant } });
  const user = await h.person(tenant, []);
  await addTokens(user, 12_000);
  const before = (await rowsOf(user, TOKENS)).length;
  expect(before).toBeGreaterThanOrEqual(12_000);
  expect(outcome(await h.api('DELETE', `/v1/iam/users/${user.id}`, { as: h.root.token, tenant }))).toBe('204');
  expect(outcome(await h.api('GET', '/v1/auth/me', { as: user.token }))).toBe('401 invalid_credential');
  expect((await rowsOf(user, SESSIONS)).map((row) => row['ended'])).toEqual([true]);
  expect((await rowsOf(user, TOKENS)).length).toBe(before);
  await h.db.knex.raw(`update sessions set ended_at = now() - interval '25 hours' where user_id = :id`, {
    id: user.id,
  });
  await tidyUp(h.db);
  expect([(await rowsOf(user, SESSIONS)).length, (await rowsOf(user, TOKENS)).length]).toEqual([0, 0]);
});
