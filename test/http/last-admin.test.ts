/** The platform is never without an active local administrator. */

import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Harness, outcome, startHarness } from './harness.ts';

let h: Harness;
beforeEach(async () => {
  h = await startHarness();
});
afterEach(async () => {
  await h.close();
});

const USERS = '/v1/iam/users';

async function activeAdmins(): Promise<number> {
  const { rows } = await h.db.knex.raw<{ rows: unknown[] }>(
    `select from users u join user_roles r on r.user_id = u.id
     where r.role_name = 'admin' and u.source = 'local' and u.status = 'active'`,
  );
  return rows.length;
}

/** How many transactions of this database wait for a row. */
async function waiting(): Promise<number> {
  const { rows } = await h.db.knex.raw<{ rows: { n: number }[] }>(
    `select count(*)::int as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
  );
  return rows[0]?.n ?? 0;
}

test('the last one is neither deactivated, deleted nor stripped; those of a directory do not count', async () => {
  // They cannot log in when the directory is away.
  await h.person('default', ['admin'], 'ldap');
  const gone = await h.person('default', ['admin']);
  expect(outcome(await h.api('POST', `${USERS}/${gone.id}/deactivate`, { as: h.root.token }))).toBe('200');
  const self = `${USERS}/${h.root.id}`;
  const as = h.root.token;
  expect(outcome(await h.api('PUT', self, { as, body: { roles: ['developer'] } }))).toBe('409 last_admin');
  expect(outcome(await h.api('POST', `${self}/deactivate`, { as }))).toBe('409 last_admin');
  expect(outcome(await h.api('DELETE', self, { as }))).toBe('409 last_admin');
  expect(outcome(await h.api('PUT', self, { as, body: { roles: ['admin', 'developer'], name: 'Still here' } }))).toBe('200');
  expect(await activeAdmins()).toBe(1);
  expect((await h.audit('user.delete')).map((row) => row['result'])).toEqual(['refused']);
});

test.each([
  ['deactivate', 'deactivate'],
  ['deactivate', 'strip'],
  ['strip', 'strip'],
  ['delete', 'strip'],
])('when two do it to each other at once, one is refused: %s and %s', async (first, second) => {
  const other = await h.person('default', ['admin']);
  const act = (how: string, id: string, as: string) => {
    if (how === 'strip') return h.api('PUT', `${USERS}/${id}`, { as, body: { roles: [] } });
    if (how === 'delete') return h.api('DELETE', `${USERS}/${id}`, { as });
    return h.api('POST', `${USERS}/${id}/deactivate`, { as });
  };
  let replies: Promise<Awaited<ReturnType<typeof act>>[]> | undefined;
  await h.db.knex.transaction(async (trx) => {
    // Both have read what they saw before either may write.
    await trx.raw('select from users order by id for update');
    replies = Promise.all([act(first, other.id, h.root.token), act(second, h.root.id, other.token)]);
    await expect.poll(waiting, { interval: 10 }).toBe(2);
  });
  const outcomes = (await replies)?.map(outcome) ?? [];
  expect(outcomes).toContain('409 last_admin');
  expect(outcomes.filter((one) => one.startsWith('2'))).toHaveLength(1);
  expect(await activeAdmins()).toBe(1);
});
