/**
 * Changes hold their caller until they commit. Callers that change themselves and each other at once are served one
 * after the other: no two of them wait for each other. A deadlock would show as 503 here, because PostgreSQL looks for
 * none before the statement's time is up.
 */

import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Database, openDatabase } from '../../src/store/database.ts';
import { type Harness, outcome, type Person, type Reply, startHarness, text } from './harness.ts';
import { blocks } from './rights/blocks.ts';

let h: Harness;
let outside: Database;
beforeAll(async () => {
  h = await startHarness();
  outside = openDatabase({ url: h.databaseUrl, poolMax: 4, queryTimeoutMs: 10_000 });
  await outside.knex.raw(
    `do $$ begin execute format('alter database %I set deadlock_timeout = ''60s''', current_database()); end $$`,
  );
  await outside.close();
  await h.cutDatabase();
  await h.restoreDatabase();
  outside = openDatabase({ url: h.databaseUrl, poolMax: 4, queryTimeoutMs: 10_000 });
  const list = () => h.api('GET', '/v1/iam/users', { as: h.root.token });
  while ((await list()).status !== 200) await sleep(20);
});
afterAll(async () => {
  await outside.close();
  await h.close();
});

const ROUNDS = 10;
/** Requests of one caller that run beside each other. */
const FLOODERS = 24;

interface Flood {
  readonly key: string;
  readonly owner: string;
  readonly tenant: string;
}

const times = <T>(n: number, ask: (i: number) => T): T[] => Array.from({ length: n }, (_none, i) => ask(i));

const rename = (target: Person, by: Person, name: string) =>
  h.api('PUT', `/v1/iam/users/${target.id}`, { as: by.token, body: { name } });

let tenants = 0;

/** A tenant with a custom role that may do everything, and users who hold it. */
async function tenantOf(
  people: number,
  quotas: object = {},
): Promise<{ readonly id: string; readonly people: readonly Person[] }> {
  const id = `held-${++tenants}`;
  const as = h.root.token;
  await h.api('POST', '/v1/iam/tenants', { as, body: { id, name: id, quotas } });
  await h.api('POST', '/v1/iam/roles', { as, tenant: id, body: { name: 'manager', permissions: ['*'] } });
  return { id, people: await Promise.all(times(people, () => h.person(id, ['manager']))) };
}

async function outcomesOf(replies: readonly Promise<Reply>[]): Promise<readonly string[]> {
  return [...new Set((await Promise.all(replies)).map(outcome))].sort((left, right) => left.localeCompare(right));
}

test('a user that changes itself many times at once', async () => {
  const self = await h.person('default', ['admin']);
  expect(await outcomesOf(times(ROUNDS, (i) => rename(self, self, `Name ${i}`)))).toEqual(['200']);
});

test('administrators who change each other, and themselves', async () => {
  const [one, two] = [await h.person('default', ['admin']), await h.person('default', ['admin'])];
  const all = times(ROUNDS, (i) => [
    rename(one, two, `A ${i}`),
    rename(two, one, `B ${i}`),
    rename(one, one, `C ${i}`),
  ]);
  expect(await outcomesOf(all.flat())).toEqual(['200']);
});

test('users of a tenant who change each other, their own role, its policies and themselves', async () => {
  const { people } = await tenantOf(3);
  const all = times(ROUNDS, (i) => {
    const [by, other] = [people[i % 3] ?? h.root, people[(i + 1) % 3] ?? h.root];
    const as = by.token;
    return [
      rename(other, by, `Name ${i}`),
      h.api('PUT', '/v1/iam/roles/manager', { as, body: { description: `${i}` } }),
      h.api('POST', '/v1/iam/roles', { as, body: { name: `role-${i}`, permissions: ['chat:read'] } }),
      h.api('POST', '/v1/iam/policies', {
        ...{
          as,
          body: {
            name: `held-${i}`,
            effect: 'deny',
            actions: ['rag:*'],
            resources: ['*'],
            attached_roles: ['manager'],
          },
        },
      }),
      h.api('POST', '/v1/iam/api-keys', {
        as,
        body: { description: 'k', scopes: ['*'], expires_in_days: 1, user_id: other.id },
      }),
    ];
  });
  expect(await outcomesOf(all.flat())).toEqual(['200', '201']);
});

test('users who are made in a tenant with a limit while it is changed', async () => {
  const { id, people } = await tenantOf(2, { max_users: 8 });
  const all = times(ROUNDS, (i) => [
    h.api('POST', '/v1/iam/users', {
      as: people[i % 2]?.token ?? '',
      body: { email: `${id}-${i}@example.test`, name: 'X' },
    }),
    h.api('PUT', `/v1/iam/tenants/${id}`, { as: h.root.token, tenant: id, body: { name: `Name ${i}` } }),
  ]);
  expect(await outcomesOf(all.flat())).toEqual(['200', '201', '409 quota_exceeded']);
});

test('a role that is deleted by force while its holders write', async () => {
  const { id, people } = await tenantOf(4);
  const writes = times(ROUNDS, (i) => {
    const body = { description: 'k', scopes: ['*'], expires_in_days: 1 };
    return h.api('POST', '/v1/iam/api-keys', { as: people[i % 4]?.token ?? '', body });
  });
  const deletion = h.api('DELETE', '/v1/iam/roles/manager?force=true', { as: h.root.token, tenant: id });
  expect(outcome(await deletion)).toBe('204');
  const answers = await outcomesOf(writes);
  expect(
    answers.filter((answer) => !['201', '403 escalation', '403 insufficient_permission'].includes(answer)),
  ).toEqual([]);
});

test('a policy of one tenant does not wait for a change that runs in another tenant, and nothing waits behind it', async () => {
  const [running, writing] = [await tenantOf(1), await tenantOf(1)];
  const [author = h.root] = writing.people;
  const [other = h.root] = running.people;
  const change = await outside.knex.transaction();
  // The names that a change of the tenant holds.
  await change.raw(`select hold_turn('', false), hold_turn(?, false)`, [running.id]);
  const policy = { name: 'no-chat', effect: 'deny', actions: ['chat:*'], resources: ['*'] };
  const written = await h.api('POST', '/v1/iam/policies', { as: author.token, body: policy });
  const changed = await h.api('PUT', '/v1/iam/policies/no-chat', { as: author.token, body: { enabled: false } });
  const ended = await h.api('DELETE', '/v1/auth/sessions', { as: other.token });
  await change.rollback();
  expect([written, changed, ended].map(outcome)).toEqual(['201', '200', '204']);
});

test('a policy of a caller that becomes a platform administrator meanwhile is not written', async () => {
  const author = await h.person('default', ['tenant-admin']);
  const change = await outside.knex.transaction();
  const { rows } = await change.raw<{ rows: { pid: number }[] }>(
    `select pg_backend_pid() as pid from hold_turn('default', false)`,
  );
  const policy = { name: 'for-all', effect: 'deny', actions: ['chat:*'], resources: ['*'] };
  const writing = h.api('POST', '/v1/iam/policies', { as: author.token, body: policy });
  await expect.poll(() => blocks(outside, rows[0]?.pid ?? 0)).toBe(true);
  await outside.knex.raw(`update user_roles set role_name = 'admin' where user_id = ?`, [author.id]);
  await change.rollback();
  expect(outcome(await writing)).toBe('503 unavailable');
  expect(outcome(await h.api('POST', '/v1/iam/policies', { as: author.token, body: policy }))).toBe('201');
  expect(outcome(await h.api('DELETE', '/v1/iam/policies/for-all', { as: author.token }))).toBe('204');
});

test('of many rotations of a key by itself at once one is done, and the others say that the secret was rotated', async () => {
  const body = { description: 'k', scopes: ['admin:keys'], expires_in_days: 1 };
  const made = await h.api('POST', '/v1/iam/api-keys', { as: h.root.token, body });
  const path = `/v1/iam/api-keys/${text(made.json, 'id')}/rotate`;
  const rotate = () => h.api('POST', path, { as: text(made.json, 'key'), body: { grace_seconds: 60 } });
  const answers = (await Promise.all(times(ROUNDS, rotate))).map(outcome);
  expect(answers.filter((answer) => answer === '200')).toHaveLength(1);
  expect(answers.filter((answer) => answer === '401 invalid_credential')).toHaveLength(ROUNDS - 1);
});

test('of two keys that revoke each other at once one is revoked', async () => {
  const body = { description: 'k', scopes: ['admin:keys'], expires_in_days: 1 };
  const [one, two] = await Promise.all(times(2, () => h.api('POST', '/v1/iam/api-keys', { as: h.root.token, body })));
  if (one === undefined || two === undefined) throw new Error('no keys');
  const revoke = (by: Reply, other: Reply) =>
    h.api('DELETE', `/v1/iam/api-keys/${text(other.json, 'id')}`, { as: text(by.json, 'key') });
  expect(await outcomesOf([revoke(one, two), revoke(two, one)])).toEqual(['204', '401 invalid_credential']);
});

test.each([
  ['its key is revoked', ({ key }: Flood) => ({ method: 'DELETE', path: `/v1/iam/api-keys/${key}` })],
  [
    "its key's owner is deactivated",
    ({ owner }: Flood) => ({ method: 'POST', path: `/v1/iam/users/${owner}/deactivate` }),
  ],
  [
    'its role is narrowed',
    () => ({ method: 'PUT', path: '/v1/iam/roles/manager', body: { permissions: ['chat:write'] } }),
  ],
  ['its tenant is suspended', ({ tenant }: Flood) => ({ method: 'POST', path: `/v1/iam/tenants/${tenant}/suspend` })],
] as const)('a caller that writes without a pause cannot keep its right from ending: %s', async (_ending, endingOf) => {
  const { id, people } = await tenantOf(1);
  const [owner = h.root] = people;
  const body = { description: 'k', scopes: ['*'], expires_in_days: 1 };
  const made = await h.api('POST', '/v1/iam/api-keys', { as: owner.token, body: { ...body, user_id: owner.id } });
  const short = { description: 'k', scopes: ['chat:read'], expires_at: new Date(Date.now() + 3_600_000).toISOString() };
  let stopped = false;
  const flood = times(FLOODERS, async () => {
    for (;;) {
      if (stopped) return 'stopped';
      const answer = outcome(await h.api('POST', '/v1/iam/api-keys', { as: text(made.json, 'key'), body: short }));
      if (answer !== '201') return answer;
    }
  });
  const { method, path, ...call } = endingOf({ key: text(made.json, 'id'), owner: owner.id, tenant: id });
  const ended = await h.api(method, path, { as: h.root.token, tenant: id, ...call });
  stopped = ended.status >= 300;
  expect([ended.status, ended.text]).toEqual([expect.toBeOneOf([200, 204]), expect.any(String)]);
  expect((await Promise.all(flood)).filter((answer) => !/^40[13] /.test(answer))).toEqual([]);
});

test('an answer is not given again to a caller whose right ends while the replay waits', async () => {
  const { people } = await tenantOf(1);
  const [person] = people;
  if (person === undefined) throw new Error('no person');
  const ask = () =>
    h.api('POST', '/v1/iam/users', {
      ...{
        as: person.token,
        body: { email: 'replayed@example.test', name: 'X' },
        headers: { 'idempotency-key': 'once' },
      },
    });
  expect(outcome(await ask())).toBe('201');
  expect((await ask()).headers['idempotency-replayed']).toBe('true');
  const trx = await outside.knex.transaction();
  await trx.raw(`update users set status = 'deactivated' where id = ?`, [person.id]);
  const { rows } = await trx.raw<{ rows: { pid: number }[] }>('select pg_backend_pid() as pid');
  const reply = ask();
  while (!(await blocks(outside, rows[0]?.pid ?? 0))) await nextTurn();
  await trx.commit();
  expect(outcome(await reply)).toBe('401 invalid_credential');
});
