/** The budgets of a setup file. */

import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { apply, exported, plan, planLines } from './support.ts';

let fresh: FreshDatabase;
beforeAll(async () => {
  fresh = await freshDatabase();
});
afterAll(() => fresh?.close());
beforeEach(async () => {
  await fresh.db.knex.raw('truncate tenants, users, user_roles, roles, policies, audit_log cascade');
});

/** As text, because the members have types of names. */
const acme = (parts: object): string =>
  JSON.stringify({ version: 1, tenants: [{ id: 'acme', name: 'Acme', ...parts }] });
const ada = { email: 'ada@acme.test', name: 'Ada', roles: ['developer'] };
const each = {
  name: 'each-developer',
  unit: 'tokens',
  limit: 1000,
  period: 'day',
  timezone: 'Asia/Kolkata',
  applies_to: { roles: ['developer'] },
  per: 'user',
  models: ['gpt-*'],
  alerts: [0.5, 1],
} as const;
const adas = {
  name: 'of-ada',
  unit: 'money',
  limit: '12.5',
  period: 'month',
  applies_to: { users: ['Ada@acme.test'] },
} as const;

async function stored(): Promise<readonly Record<string, unknown>[]> {
  const { rows } = await fresh.db.knex.raw<{ rows: Record<string, unknown>[] }>('select * from budgets order by name');
  return rows;
}

test('are made with the users that the file creates, and the export of the result changes nothing', async () => {
  await apply(fresh.db, acme({ users: [ada], budgets: [adas, each] }));
  const { rows } = await fresh.db.knex.raw<{ rows: { id: string }[] }>('select id from users');
  expect(await stored()).toMatchObject(
    [
      { ...each, limit: undefined, limit_amount: 1000, action: 'block', enabled: true, epoch: 0 },
      { name: 'of-ada', limit_amount: 12_500_000_000, applies_to: { users: [rows[0]?.id] }, per: 'all', models: null },
    ].map(({ limit: _limit, ...row }: Record<string, unknown>) => row),
  );
  const text = await exported(fresh.db);
  expect(text).toContain('limit: "12.50"');
  expect(text).toContain('ada@acme.test');
  expect(await planLines(fresh.db, text)).toEqual([]);
  const { rows: audit } = await fresh.db.knex.raw<{ rows: { target_type: string }[] }>(
    `select target_type from audit_log where action = 'budget.create'`,
  );
  expect(audit).toEqual([{ target_type: 'budget' }, { target_type: 'budget' }]);
});

test('with a role that neither the tenant nor the file has are refused by the plan, at their place', async () => {
  const ofWriters = { ...each, applies_to: { roles: ['writer'] } };
  const writer = { name: 'writer', permissions: ['chat:*'] };
  expect(await plan(fresh.db, acme({ budgets: [ofWriters] }))).toMatchObject({
    errors: [
      {
        path: '/tenants/0/budgets/0/applies_to/roles',
        message: 'This role does not exist in the tenant: writer.',
      },
    ],
  });
  const whole = acme({ roles: [writer], budgets: [ofWriters] });
  await apply(fresh.db, whole);
  expect(await stored()).toMatchObject([{ applies_to: { roles: ['writer'] } }]);
  await fresh.db.knex('roles').where({ tenant_id: 'acme', name: 'writer' }).delete();
  expect(await planLines(fresh.db, acme({ budgets: [ofWriters] }))).toEqual([]);
});

test('with a key or a user that neither the tenant nor the file has are refused by the plan, with the next step', async () => {
  const key = 'key_01h455vb4pex5vsknk084sn02q';
  const user = 'usr_01h455vb4pex5vsknk084sn02q';
  const ofKey = { ...each, name: 'of-a-key', per: 'key', applies_to: { keys: [key] } };
  const ofUsers = { ...adas, applies_to: { users: ['Ada@acme.test', user] } };
  const keyAdvice = 'Keys have other ids in each database. Name keys of this database, or select them by metadata.';
  const userAdvice = 'Add the user to the file, or correct the budget.';
  const [ofNoKey, ofNoUser, ofNoAda] = [
    {
      path: '/tenants/0/budgets/0/applies_to/keys/0',
      message: `The budget of-a-key applies to the key ${key}, which the tenant acme does not have. ${keyAdvice}`,
    },
    {
      path: '/tenants/0/budgets/1/applies_to/users/1',
      message: `The budget of-ada applies to the user ${user}, which the tenant acme does not have. ${userAdvice}`,
    },
    {
      path: '/tenants/0/budgets/1/applies_to/users/0',
      message: `The budget of-ada applies to the user ada@acme.test, which the tenant acme does not have. ${userAdvice}`,
    },
  ];
  const budgets = [ofKey, ofUsers];
  expect(await plan(fresh.db, acme({ budgets }))).toEqual({ errors: [ofNoKey, ofNoAda, ofNoUser] });
  expect(await plan(fresh.db, acme({ users: [ada], budgets }))).toEqual({ errors: [ofNoKey, ofNoUser] });

  await apply(fresh.db, acme({}));
  await fresh.db.knex('users').insert({ id: user, tenant_id: 'acme', email: 'bob@acme.test', name: 'Bob' });
  const shown = { description: '', prefix: 'pk_', last_four: 'last', created_by: 'cli' };
  await fresh.db
    .knex('api_keys')
    .insert({ id: key, tenant_id: 'acme', digest: Buffer.alloc(32), scopes: [], ...shown });
  await apply(fresh.db, acme({ users: [ada], budgets }));
  expect(await stored()).toMatchObject([{ applies_to: { keys: [key] } }, { applies_to: { users: [{}, user] } }]);

  // A budget keeps a key and a user that were deleted after it was written, if the file names the user by id.
  await fresh.db.knex('api_keys').delete();
  await fresh.db.knex('users').where({ id: user }).delete();
  const changed = budgets.map((budget) => ({ ...budget, enabled: false }));
  await apply(fresh.db, acme({ budgets: changed }));
  expect(await stored()).toMatchObject([{ enabled: false }, { enabled: false, applies_to: { users: [{}, user] } }]);
  const without = acme({ users: [], budgets: budgets.map((budget) => ({ ...budget, enabled: true })) });
  expect(await plan(fresh.db, without, { prune: true })).toEqual({ errors: [ofNoAda] });
});

test('are unchanged by a file that spells an email address in capitals', async () => {
  await apply(fresh.db, acme({ users: [ada], budgets: [adas] }));
  expect(await planLines(fresh.db, acme({ users: [ada], budgets: [adas] }))).toEqual([]);
});

test('are changed member by member, begin a new amount as through the API, and are pruned', async () => {
  await apply(fresh.db, acme({ users: [ada], budgets: [adas, each] }));
  const changed = acme({ budgets: [{ name: 'each-developer', limit: 2000, models: null, alerts: null }] });
  expect(await planLines(fresh.db, changed)).toEqual(['change budget acme/each-developer']);
  await apply(fresh.db, changed);
  expect(await stored()).toMatchObject([{ limit_amount: 2000, models: null, alerts: [], epoch: 0 }, {}]);
  await apply(fresh.db, acme({ budgets: [{ name: 'each-developer', period: 'week' }] }));
  expect(await stored()).toMatchObject([{ period: 'week', epoch: 1 }, {}]);
  await apply(fresh.db, acme({ budgets: [adas] }), { prune: true });
  expect(await stored()).toMatchObject([{ name: 'of-ada' }]);
});

test('note the alerts that a lower limit makes due', async () => {
  const team = {
    name: 'team',
    unit: 'requests',
    limit: 100,
    period: 'total',
    applies_to: { tenant: true },
    alerts: [1],
  };
  await apply(fresh.db, acme({ budgets: [team] }));
  const [{ id } = {}] = await stored();
  await fresh.db.knex('token_budgets').insert({ tenant_id: 'acme', period: `${id} total#0`, spent: 10 });
  await apply(fresh.db, acme({ budgets: [{ ...team, limit: 10 }] }));
  const noted = await fresh.db.knex('budget_alerts').where({ budget_id: id }).select('threshold', 'spent');
  expect(noted).toEqual([{ threshold: 1, spent: 10 }]);
});

test('that are monthly tokens note the alerts that a lower quota makes due', async () => {
  await apply(fresh.db, acme({ quotas: { monthly_tokens: 100 } }));
  const period = new Date().toISOString().slice(0, 7);
  await fresh.db.knex('token_budgets').insert({ tenant_id: 'acme', period, spent: 10 });
  await apply(fresh.db, acme({ quotas: { monthly_tokens: 10 } }));
  const noted = await fresh.db.knex('budget_alerts').orderBy('threshold').select('threshold', 'spent');
  expect(noted).toEqual([
    { threshold: 0.8, spent: 10 },
    { threshold: 1, spent: 10 },
  ]);
});

test('with values that the API refuses are errors at their places, before anything is written', async () => {
  const planned = await plan(
    fresh.db,
    acme({
      users: [ada],
      budgets: [
        { name: 'of-nothing' },
        { ...adas, limit: 12 },
        { ...each, timezone: 'Mars/Olympus', models: ['a**********b'] },
      ],
    }),
  );
  expect('errors' in planned ? planned.errors.map(({ path }) => path) : []).toEqual([
    ...['unit', 'limit', 'period', 'applies_to'].map((member) => `/tenants/0/budgets/0/${member}`),
    '/tenants/0/budgets/1/limit',
    '/tenants/0/budgets/2/timezone',
    '/tenants/0/budgets/2/models/0',
  ]);
});

test('of a user or a role that does not exist, or more than 16 for one request, are refused as a whole', async () => {
  await expect(apply(fresh.db, acme({ budgets: [adas] }))).rejects.toThrow(
    'applies to the user ada@acme.test, which the tenant acme does not have.',
  );
  await expect(apply(fresh.db, acme({ budgets: [{ ...each, applies_to: { roles: ['wizard'] } }] }))).rejects.toThrow(
    'This role does not exist in the tenant: wizard.',
  );
  const many = (count: number) =>
    Array.from({ length: count }, (_, i) => ({ ...each, name: `budget-${i}`, models: null, timezone: null }));
  await apply(fresh.db, acme({ budgets: many(16), users: [ada] }));
  const bob = { ...ada, email: 'bob@acme.test', roles: ['analyst'] };
  const ofBob = { ...each, name: 'of-analysts', models: null, applies_to: { roles: ['analyst'] } };
  await apply(fresh.db, acme({ budgets: [ofBob], users: [bob] }));
  await expect(
    apply(fresh.db, acme({ users: [{ email: bob.email, roles: ['analyst', 'developer'] }] })),
  ).rejects.toThrow('More than 16 budgets');
  expect(await stored()).toHaveLength(17);
});

test('beyond a limit of the tenant are refused by the plan as by the run, and the plan writes nothing', async () => {
  const many = (count: number, more: object = {}) =>
    acme({
      users: [ada],
      budgets: Array.from({ length: count }, (_, i) => ({
        ...each,
        name: `budget-${i}`,
        models: [`model-${i}`],
        ...more,
      })),
    });
  const models = Array.from({ length: 200 }, (_, i) => `${i}`.padEnd(250, 'x'));
  const roles = Array.from({ length: 30 }, (_, i) => ({
    name: `role-${i}`,
    permissions: ['chat:read'],
    resource_constraints: { models },
  }));
  for (const [document, message] of [
    [many(17, { models: null }), 'More than 16 budgets would count one request'],
    [acme({ roles }), 'The roles and policies of a tenant may use 1 MiB in total'],
  ] as const) {
    await expect(plan(fresh.db, document)).rejects.toThrow(message);
    expect(await stored()).toEqual([]);
  }
  expect(await plan(fresh.db, many(16, { models: null }))).toHaveLength(18);
  for (const table of ['tenants', 'users', 'budgets', 'audit_log'])
    expect(await fresh.db.knex(table).select()).toEqual([]);
  await apply(fresh.db, acme({}));
  await fresh.db.knex.raw(
    `insert into budgets (id, tenant_id, name, unit, limit_amount, period, applies_to, enabled)
     select 'bud_' || i, 'acme', 'stored-' || i, 'tokens', 1, 'day', '{"tenant": true}', false from generate_series(1, 1000) i`,
  );
  await expect(plan(fresh.db, many(1))).rejects.toThrow('The tenant already has 1000 budgets');
});

test('are counted after all of them are written', async () => {
  const ofAll = (name: string, enabled: boolean) => ({ ...each, name, models: null, enabled });
  const old = Array.from({ length: 16 }, (_, i) => ofAll(`old-${i}`, true));
  await apply(fresh.db, acme({ users: [ada], budgets: old }));
  await apply(fresh.db, acme({ budgets: [ofAll('a-new-one', true), ofAll('old-3', false)] }));
  expect((await stored()).filter(({ enabled }) => enabled)).toHaveLength(16);
});

test('of the guide are a setup file', async () => {
  const guide = await readFile(new URL('../../docs/budgets.md', import.meta.url), 'utf8');
  await apply(fresh.db, /```yaml\n(.*?)```/s.exec(guide)?.[1] ?? '');
  expect(await stored()).toMatchObject([{ name: 'ada' }, { name: 'each-key', per: 'key' }]);
});
