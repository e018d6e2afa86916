/** `max_users` is never exceeded, with any number of concurrent creations. */

import { beforeEach, expect, test } from 'vitest';
import { type Harness, it, outcome, type Person, rows, unique } from './harness.ts';

let h: Harness;
it.beforeAll(({ harness }) => {
  h = harness;
});

const USERS = '/v1/iam/users';
let tenant = '';
let boss: Person;
beforeEach(async () => {
  tenant = unique('full');
  await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id: tenant, name: 'Full' } });
  boss = await h.person(tenant, ['tenant-admin']);
});

const limit = async (max: number | null) =>
  expect(
    outcome(
      await h.api('PUT', `/v1/iam/tenants/${tenant}`, { as: h.root.token, body: { quotas: { max_users: max } } }),
    ),
  ).toBe('200');
const create = (i: number) =>
  h.api('POST', USERS, { as: boss.token, body: { email: `u${i}@${tenant}.test`, name: `User ${i}` } });
const active = async () => rows(await h.api('GET', `${USERS}?status=active&limit=200`, { as: boss.token })).length;
const count = (outcomes: readonly string[], wanted: string) => outcomes.filter((one) => one === wanted).length;

test('a hundred creations at once stop exactly at the limit', async () => {
  await limit(40);
  const replies = await Promise.all(Array.from({ length: 100 }, (_none, i) => create(i)));
  const outcomes = replies.map(outcome);
  // The administrator has a place already.
  expect([count(outcomes, '201'), count(outcomes, '409 quota_exceeded')]).toEqual([39, 61]);
  expect(await active()).toBe(40);
  const refused = replies.find((reply) => reply.status === 409);
  expect(refused?.headers['x-should-retry']).toBe('false');
});

test('of activations and creations at once as many succeed as there are places', async () => {
  const sleepers: string[] = [];
  for (let i = 0; i < 6; i++) {
    const { id } = await h.person(tenant, []);
    expect(outcome(await h.api('POST', `${USERS}/${id}/deactivate`, { as: boss.token }))).toBe('200');
    sleepers.push(id);
  }
  await limit(5);
  const wake = (id: string) => h.api('POST', `${USERS}/${id}/activate`, { as: boss.token });
  const replies = await Promise.all([...sleepers.map(wake), ...sleepers.map((_id, i) => create(i))]);
  const outcomes = replies.map(outcome);
  expect(count(outcomes, '409 quota_exceeded')).toBe(8);
  expect(outcomes.filter((one) => one.startsWith('20'))).toHaveLength(4);
  expect(await active()).toBe(5);
});

test('a deactivation or deletion frees a place, and activating an active user takes none', async () => {
  const one = await h.person(tenant, []);
  await limit(2);
  expect(outcome(await create(1))).toBe('409 quota_exceeded');
  expect(outcome(await h.api('POST', `${USERS}/${one.id}/activate`, { as: boss.token }))).toBe('200');
  await h.api('POST', `${USERS}/${one.id}/deactivate`, { as: boss.token });
  const made = await create(2);
  expect(outcome(made)).toBe('201');
  expect(outcome(await h.api('POST', `${USERS}/${one.id}/activate`, { as: boss.token }))).toBe('409 quota_exceeded');
  await h.api('DELETE', `${USERS}/${String(made.json['id'])}`, { as: boss.token });
  expect(outcome(await h.api('POST', `${USERS}/${one.id}/activate`, { as: boss.token }))).toBe('200');
});

test('a limit below the number of users removes no user and admits none; 0 admits no user, null is no limit', async () => {
  await h.person(tenant, []);
  await limit(1);
  expect([await active(), outcome(await create(1))]).toEqual([2, '409 quota_exceeded']);
  await limit(0);
  expect(outcome(await create(2))).toBe('409 quota_exceeded');
  await limit(null);
  expect(outcome(await create(3))).toBe('201');
});

test('a limit that is set during a creation applies to every later creation', async () => {
  const blocker = await h.db.knex.transaction();
  await blocker.raw('select from tenants where id = ? for update', [tenant]);
  // Both wait for the tenant: one has seen no limit, the other is the limit.
  const creating = create(1);
  const limiting = limit(1);
  await blocker.rollback();
  const made = outcome(await creating);
  await limiting;
  expect(['201', '409 quota_exceeded']).toContain(made);
  expect(outcome(await create(2))).toBe('409 quota_exceeded');
  expect(await active()).toBe(made === '201' ? 2 : 1);
});
