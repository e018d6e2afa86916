/** The deletion of a role that many users have: at once for all users, and in batches in the store. */

import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { DELETED_ROLES_UPKEEP, tidyUp } from '../../src/iam/auth/upkeep.ts';
import { transaction } from '../../src/store/transaction.ts';
import { PATIENT } from '../support/database.ts';
import { type Harness, outcome, type Person, rows, startHarness, unique } from './harness.ts';

const MANY = 200_000;
/** More than two batches. */
const SOME = 450;

let h: Harness;
beforeAll(async () => {
  h = await startHarness();
});
afterAll(() => h?.close());

let tenant = '';
let holder: Person;
const NAME = 'helper';
const ROLES = '/v1/iam/roles';
const removeTraces = () => tidyUp(h.db, undefined, DELETED_ROLES_UPKEEP);
const make = () =>
  h.api('POST', ROLES, { as: h.root.token, tenant, body: { name: NAME, permissions: ['admin:users', 'models:read'] } });
const remove = () => h.api('DELETE', `${ROLES}/${NAME}?force=true`, { as: h.root.token, tenant });
const shown = async ({ id }: Person) =>
  (await h.api('GET', `/v1/iam/users/${id}`, { as: h.root.token, tenant })).json['roles'];
const mayList = async ({ token }: Person) => outcome(await h.api('GET', '/v1/iam/users', { as: token }));

beforeEach(async () => {
  tenant = unique('acme');
  await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id: tenant, name: tenant } });
  await make();
  holder = await h.person(tenant, [NAME]);
});

/**
 * Behind the API's back, and without a line in the feed. Default: rows of the role alone, because users take a minute
 * to write.
 */
async function makeHolders(count: number, withUsers = false, from = 1): Promise<void> {
  // The server's own statements end after 2 s.
  const patient = h.db.reopen({ ...PATIENT, poolMax: 1 });
  await transaction(patient, async (trx) => {
    await trx.raw('set local session_replication_role = replica');
    const bindings = { tenant, name: NAME, from, to: from + count - 1, made: `usr_${tenant}_` };
    if (withUsers) {
      await trx.raw(
        `insert into users (id, tenant_id, name, role_names)
         select :made || n, :tenant, 'Holder', array[:name] from generate_series(cast(:from as int), cast(:to as int)) n`,
        bindings,
      );
    }
    await trx.raw(
      `insert into user_roles (user_id, role_name, tenant_id, status)
       select :made || n, :name, :tenant, 'active' from generate_series(cast(:from as int), cast(:to as int)) n`,
      bindings,
    );
  });
  await patient.close();
}

test('a role with 200,000 holders is deleted by one request, and gives its former holders no permission', async () => {
  for (let batch = 0; batch < 10; batch++) await makeHolders(MANY / 10, false, batch * (MANY / 10));
  expect(await mayList(holder)).toBe('200');
  expect(outcome(await remove())).toBe('204');
  expect(await mayList(holder)).toBe('403 insufficient_permission');
  expect(await shown(holder)).toEqual([]);
  expect((await h.api('GET', '/v1/auth/me', { as: holder.token })).json).toMatchObject({ roles: [], permissions: [] });
  await h.db.knex.raw('truncate deleted_roles');
});

test('the name of a deleted role is refused until no user has a row of it, so that no former holder gets the new role', async () => {
  await makeHolders(SOME, true);
  expect(outcome(await remove())).toBe('204');
  const refused = await make();
  expect([outcome(refused), refused.json['detail']]).toEqual([
    '409 in_use',
    expect.stringContaining('still being removed'),
  ]);
  expect(await removeTraces()).toBe(SOME + 2);
  expect(await removeTraces()).toBe(0);
  expect(outcome(await make())).toBe('201');
  expect(await mayList(holder)).toBe('403 insufficient_permission');
  expect(await shown(holder)).toEqual([]);
});

test('the former holders of a deleted role are in no list by the role and in no change of its holders, also before their rows are gone', async () => {
  await h.person(tenant, ['developer']);
  const found = async (role: string, query = '') => {
    const path = `/v1/iam/users?role=${role}&count=true${query}`;
    const reply = await h.api('GET', path, { as: h.root.token, tenant });
    return [rows(reply).length, reply.json['total']];
  };
  const body = { action: 'remove_role', role: NAME, filter: {} };
  const removable = async () =>
    (await h.api('POST', '/v1/iam/users/change?dry_run=true', { as: h.root.token, tenant, body })).json['data'];
  expect([await found(NAME), await found(NAME, '&q=usr_'), await removable()]).toEqual([
    [1, 1],
    [1, 1],
    [expect.objectContaining({ id: holder.id, outcome: 'would_change' })],
  ]);
  await remove();
  for (const query of ['', '&q=usr_', '&status=active', '&sort=name', '&sort=-last_login_at'])
    expect(await found(NAME, query), query).toEqual([0, 0]);
  const everywhere = await h.api('GET', `/v1/iam/users?role=${NAME}&count=true&tenant_id=*`, { as: h.root.token });
  expect(rows(everywhere).map(({ id }) => id)).not.toContain(holder.id);
  expect(everywhere.json['total']).toBe(rows(everywhere).length);
  expect(await removable()).toEqual([]);
  expect(await found('developer')).toEqual([1, 1]);
  await removeTraces();
});

test('a budget of a deleted role counts no request of its former holders, also before their rows are gone', async () => {
  const as = { as: h.root.token, tenant };
  const person = await h.person(tenant, [NAME, 'developer']);
  const scope = { unit: 'tokens', limit: 0, period: 'month' };
  await h.api('POST', '/v1/iam/budgets', { ...as, body: { name: 'helpers', ...scope, applies_to: { roles: [NAME] } } });
  const chat = {
    method: 'POST',
    path: '/v1/chat/completions',
    body: '{"model":"m"}',
    content_type: 'application/json',
  };
  const code = async () =>
    (await h.api('POST', '/v1/iam/explain', { ...as, body: { subject: person.id, ...chat } })).json['code'];
  expect(await code()).toBe('insufficient_quota');
  await remove();
  expect(await code()).toBe('allow');
  const query = '/v1/iam/explain/who-can?permission=chat:write';
  const { users } = Object((await h.api('GET', query, as)).json);
  expect(Object(users[0])).toMatchObject({ id: person.id, roles: ['developer'] });
  await removeTraces();
});

test('a user whose row is locked keeps its row of the deleted role until the lock ends, and no change waits for the batch', async () => {
  await makeHolders(SOME, true);
  await remove();
  await transaction(h.db, async (trx) => {
    await trx.raw('select from users where id = ? for share', [holder.id]);
    expect(await removeTraces()).toBe(SOME);
    expect(await removeTraces()).toBe(0);
  });
  expect(outcome(await make())).toBe('409 in_use');
  expect(await removeTraces()).toBe(2);
  expect(outcome(await make())).toBe('201');
  expect(await shown(holder)).toEqual([]);
});

test('users of the tenant are deactivated and changed while the rows of a deleted role are removed', async () => {
  const people = await Promise.all(Array.from({ length: 12 }, () => h.person(tenant, [NAME, 'developer'])));
  await makeHolders(SOME, true);
  await remove();
  let removing = true;
  const removal = removeTraces().finally(() => {
    removing = false;
  });
  const outcomes: string[] = [];
  for (const { id } of people) {
    if (removing) outcomes.push('while it is removed');
    const path = `/v1/iam/users/${id}`;
    const put = await h.api('PUT', path, { as: h.root.token, tenant, body: { roles: ['auditor'] } });
    outcomes.push(outcome(put), outcome(await h.api('POST', `${path}/deactivate`, { as: h.root.token, tenant })));
    expect(put.json['roles']).toEqual(['auditor']);
  }
  expect(new Set(outcomes)).toEqual(new Set(['while it is removed', '200']));
  await removal;
  await removeTraces();
  expect(outcome(await make())).toBe('201');
});
