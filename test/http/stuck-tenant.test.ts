/**
 * All rows of one tenant's users are locked and stay locked: callers of that tenant wait or fail, and all others go on.
 */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Harness, outcome, startHarness, text, unique } from './harness.ts';

const CALLERS = 50;
const POOL_SIZE = 10;
const PASSWORD = 'correct horse battery staple';
const STUCK = unique('stuck');
const OTHER = unique('other');

let h: Harness;
beforeAll(async () => {
  h = await startHarness({
    settings: { POSTERN_DATABASE_POOL_SIZE: String(POOL_SIZE), POSTERN_LOGIN_FAILURES_PER_ADDRESS: '30' },
  });
  for (const id of [STUCK, OTHER]) await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id, name: id } });
});
afterAll(() => h?.close());

const emailOf = (tenant: string, n: number): string => `user-${n}@${tenant}.test`;

async function makeUser(tenant: string, n: number): Promise<string> {
  const email = emailOf(tenant, n);
  const made = await h.api('POST', '/v1/iam/users', {
    as: h.root.token,
    tenant,
    body: { email, name: email, password: PASSWORD, roles: ['developer'] },
  });
  return text(made.json, 'id');
}

const login = (tenant: string, n: number) =>
  h.api('POST', '/v1/auth/login', { body: { email: emailOf(tenant, n), password: PASSWORD } });
const refresh = (token: string) => h.api('POST', '/v1/auth/refresh', { body: { refresh_token: token } });
const logout = (token: string) => h.api('POST', '/v1/auth/logout', { body: { refresh_token: token } });

test('fifty callers that wait for a lock open no more connections than the pool has, and other tenants log in, refresh, revoke and log out', async () => {
  const tokens: string[] = [];
  for (let n = 0; n < CALLERS; n++) {
    await makeUser(STUCK, n);
    if (n % 2 === 1) tokens.push(text((await login(STUCK, n)).json, 'refresh_token'));
  }
  await makeUser(OTHER, 0);

  const holder = h.db.newClient();
  await holder.connect();
  await holder.query('begin');
  await holder.query('select from users where tenant_id = $1 for update', [STUCK]);
  await holder.query('select from sessions where user_id in (select id from users where tenant_id = $1) for update', [
    STUCK,
  ]);

  let running = 0;
  const answers: string[] = [];
  const call = async (calling: Promise<{ readonly status: number }>): Promise<void> => {
    running++;
    answers.push(String((await calling).status));
    running--;
  };
  const callers = [
    ...Array.from({ length: CALLERS / 2 }, (_, i) => call(login(STUCK, 2 * i))),
    ...tokens.map((token, i) => call(i % 2 === 0 ? refresh(token) : logout(token))),
  ];
  const others: string[] = [];
  let most = 0;
  do {
    const begun = await login(OTHER, 0);
    const renewed = await refresh(text(begun.json, 'refresh_token'));
    const key = await h.api('POST', '/v1/iam/api-keys', {
      as: text(begun.json, 'access_token'),
      body: { description: 'Mine', scopes: ['chat:read'], expires_in_days: 1 },
    });
    const revoked = await h.api('DELETE', `/v1/iam/api-keys/${text(key.json, 'id')}`, {
      as: text(begun.json, 'access_token'),
    });
    const over = await logout(text(renewed.json, 'refresh_token'));
    others.push(...[begun, renewed, key, revoked, over].map(outcome));
    const { rows } = await holder.query(
      `select count(*)::int as count from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
         and wait_event_type = 'Lock'`,
    );
    most = Math.max(most, Number(rows[0]?.count));
    expect(h.db.pool.numUsed() + h.db.pool.numFree()).toBeLessThanOrEqual(POOL_SIZE);
  } while (running > 0);
  await Promise.all(callers);
  expect(new Set(others)).toEqual(new Set(['200', '201', '204']));
  expect(new Set(answers)).toEqual(new Set(['503']));
  expect(most).toBeGreaterThan(0);
  expect(most).toBeLessThanOrEqual(POOL_SIZE / 2);

  await holder.query('rollback');
  await holder.end();
  const { rows } = await h.db.knex.raw<{ rows: unknown[] }>('select from login_failures where failures > 0');
  expect(rows).toEqual([]);
  expect(outcome(await login(STUCK, 0))).toBe('200');
});
