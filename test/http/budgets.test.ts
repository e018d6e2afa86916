/** /v1/iam/budgets: limits of what callers may spend in a period. */

import { beforeEach, describe, expect, test } from 'vitest';
import { PATIENT } from '../support/database.ts';
import { type Harness, it, type Json, outcome, type Person, type Reply, rows, text, unique } from './harness.ts';

const ACME = unique('acme');
const GLOBEX = unique('globex');
const BUDGETS = '/v1/iam/budgets';

let h: Harness;
let boss: Person;
let theirs: Person;
it.beforeAll(async ({ harness }) => {
  h = harness;
  for (const id of [ACME, GLOBEX]) await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id, name: id } });
  boss = await h.person(ACME, ['tenant-admin']);
  theirs = await h.person(GLOBEX, ['tenant-admin']);
});

let n = 0;
let name = '';
beforeEach(() => {
  n += 1;
  name = `budget-${n}`;
});

/** Selects no caller of another test. */
const own = () => ({ metadata: { of: name } });
const body = (members: object = {}) => ({
  name,
  unit: 'money',
  limit: '10.00',
  period: 'month',
  applies_to: own(),
  ...members,
});
const create = (members: object = {}, as = boss.token) => h.api('POST', BUDGETS, { as, body: body(members) });
async function made(members: object = {}): Promise<string> {
  const reply = await create(members);
  expect([outcome(reply), reply.json['errors']]).toEqual(['201', undefined]);
  return text(reply.json, 'id');
}
const get = (id: string, as = boss.token) => h.api('GET', `${BUDGETS}/${id}`, { as });
const patch = (id: string, changes: object, as = boss.token) =>
  h.api('PATCH', `${BUDGETS}/${id}`, { as, body: changes });
const reset = (id: string, reason = 'a test') =>
  h.api('POST', `${BUDGETS}/${id}/reset`, { as: boss.token, body: { reason } });
const failed = (reply: Reply): unknown => [
  outcome(reply),
  ...(Array.isArray(reply.json['errors']) ? reply.json['errors'].map(({ path }) => path) : []),
];

async function key(members: object = {}): Promise<string> {
  const reply = await h.api('POST', '/v1/iam/api-keys', {
    as: boss.token,
    body: { description: 'k', scopes: ['chat:read'], expires_in_days: 1, ...members },
  });
  expect([outcome(reply), reply.json['errors']]).toEqual(['201', undefined]);
  return text(reply.json, 'id');
}

async function epochOf(id: string): Promise<unknown> {
  const { rows: found } = await h.db.knex.raw<{ rows: Json[] }>('select epoch from budgets where id = ?', [id]);
  return found[0]?.['epoch'];
}

/** Books an amount, as a settlement does. */
async function spend(period: string, spent: number, held = 0): Promise<void> {
  await h.db.knex('token_budgets').insert({ tenant_id: ACME, period, spent, held });
}

/** The alerts of a budget that were noted, by amount. */
async function alertsOf(id: string): Promise<unknown> {
  const found = h.db.knex('budget_alerts').where({ budget_id: id }).orderBy(['period', 'threshold']);
  const noted: Json[] = await found.select('period', 'threshold', 'spent', 'limit_amount');
  return noted.map(({ period, threshold, spent, limit_amount }) => [period, threshold, spent, limit_amount]);
}

const month = () => new Date().toISOString().slice(0, 7);
const day = () => new Date().toISOString().slice(0, 10);

async function use(of: {
  key?: string;
  user?: string;
  model?: string;
  day?: string;
  cost?: number;
  tokens?: number;
  requests?: number;
}) {
  const { key = '', user = '', model = 'm', cost = 0, tokens = 0, requests = 1 } = of;
  await h.db.knex('usage_daily').insert({
    tenant_id: ACME,
    day: of.day ?? day(),
    model,
    key_id: key,
    user_id: user,
    requests,
    total_tokens: tokens,
    cost,
  });
}

describe('a budget', () => {
  test('is made with its defaults, shown with what is left, changed member by member and deleted', async () => {
    const reply = await create();
    const id = text(reply.json, 'id');
    expect([outcome(reply), reply.headers['location']]).toEqual(['201', `${BUDGETS}/${id}`]);
    const stored = {
      id,
      tenant_id: ACME,
      name,
      unit: 'money',
      limit: '10.00',
      period: 'month',
      timezone: null,
      applies_to: own(),
      per: 'all',
      models: null,
      action: 'block',
      alerts: [],
      enabled: true,
      created_at: expect.any(String),
      updated_at: expect.any(String),
    };
    expect(reply.json).toEqual(stored);
    await spend(`${id} ${month()}#0`, 2_500_000_001, 500_000_000);
    const state = {
      starts_at: `${month()}-01T00:00:00.000Z`,
      resets_at: expect.stringMatching(/-01T00:00:00.000Z$/),
      spent: '2.500000001',
      reserved: '0.50',
      remaining: '6.999999999',
    };
    expect((await get(id)).json).toEqual({ ...stored, state: { ...state, by_key: [], by_model: [] } });
    const list = await h.api('GET', `${BUDGETS}?q=${name}&unit=money&enabled=true&count=true`, { as: boss.token });
    expect([rows(list), list.json['total']]).toEqual([[{ ...stored, state }], 1]);
    const changes = { limit: '1.00', alerts: [0.8, 1], models: ['gpt-*'], action: 'report' };
    expect((await patch(id, changes)).json).toMatchObject({ ...changes, name });
    expect((await get(id)).json['state']).toMatchObject({ spent: '2.500000001', remaining: '0.00' });
    expect(outcome(await h.api('DELETE', `${BUDGETS}/${id}`, { as: boss.token }))).toBe('204');
    expect(outcome(await get(id))).toBe('404 not_found');
  });

  test.each<[string, object, string]>([
    ['an amount with ten places', { limit: '0.0000000001' }, 'limit'],
    ['an amount beyond nine million', { limit: '9000000.000000001' }, 'limit'],
    ['an amount of money that is a number', { limit: 10 }, 'limit'],
    ['tokens as a text', { unit: 'tokens', limit: '10' }, 'limit'],
    ['a blank name', { name: ' \t ' }, 'name'],
    ['a name with a control character', { name: 'two\nlines' }, 'name'],
    ['a name with a hidden character', { name: 'two\u202ewords' }, 'name'],
    ['a name of 65 characters', { name: 'n'.repeat(65) }, 'name'],
    ['an unknown time zone', { timezone: 'Mars/Olympus' }, 'timezone'],
    ['two selectors', { applies_to: { tenant: true, metadata: { a: 'b' } } }, 'applies_to'],
    ['no selector', { applies_to: {} }, 'applies_to'],
    ['a key that does not exist', { applies_to: { keys: [`key_${'0'.repeat(26)}`] } }, 'applies_to/keys/0'],
    ['a text that is no id', { applies_to: { users: ['someone'] } }, 'applies_to/users/0'],
    ['a role that does not exist', { applies_to: { roles: ['developer', 'nothing'] } }, 'applies_to/roles/1'],
    ['a glob with too many stars', { models: ['*a*a*a*a*a*a*a*a*a'] }, 'models/0'],
    ['an alert of nothing', { alerts: [0] }, 'alerts/0'],
    ['an alert twice', { alerts: [0.5, 0.5] }, 'alerts'],
    ['an alert beyond ten times the limit', { alerts: [10.5] }, 'alerts/0'],
  ])('with %s is refused', async (_what, members, param) => {
    expect(failed(await create(members))).toEqual(['422 invalid_field', `/${param}`]);
  });

  test('accepts every amount up to the bound to the last place, and zero', async () => {
    for (const limit of ['9000000.00', '0.000000001', '0.00']) {
      const id = await made({ name: `${name}-${limit.replaceAll('.', '-')}`, limit });
      expect((await get(id)).json).toMatchObject({ limit });
    }
  });

  test('has a name of its own in its tenant, and another tenant may use it too', async () => {
    await made();
    expect(failed(await create())).toEqual(['409 already_exists']);
    expect(outcome(await create({}, theirs.token))).toBe('201');
  });

  test('has any name that a person types, found in any case and unique however its accents are written', async () => {
    const typed = `Équipe ${n}: R&D, 50 %`;
    const id = await made({ name: `  ${typed.normalize('NFD')} ` });
    expect((await get(id)).json).toMatchObject({ name: typed });
    expect(failed(await create({ name: typed }))).toEqual(['409 already_exists']);
    const found = await h.api('GET', `${BUDGETS}?q=${encodeURIComponent(typed.toUpperCase())}`, { as: boss.token });
    expect(rows(found).map((row) => row['id'])).toEqual([id]);
  });

  test('is found by name and by each filter among those of all tenants, and counted', async () => {
    const report = { name: `${name} Zebra report`, unit: 'tokens', limit: 5, action: 'report', enabled: false };
    const [mine = '', hidden = ''] = [await made({ name: `${name} Zebra` }), await made(report)];
    const other = text((await create({ name: `${name} Zebra` }, theirs.token)).json, 'id');
    const found = async (filter: string) => {
      const path = `${BUDGETS}?tenant_id=*&count=true&q=${encodeURIComponent(`${name} ZEBRA`)}${filter}`;
      const reply = await h.api('GET', path, { as: h.root.token });
      return [rows(reply).map((row) => row['id']), reply.json['total']];
    };
    expect(await found('')).toEqual([[mine, other, hidden], 3]);
    for (const filter of ['unit=tokens', 'action=report', 'enabled=false'])
      expect(await found(`&${filter}`)).toEqual([[hidden], 1]);
    expect(await found('&period=month&unit=money')).toEqual([[mine, other], 2]);
    expect(await found('&period=hour')).toEqual([[], 0]);
  });

  test('begins a new amount with another unit, period, zone or share, and keeps it with any other change', async () => {
    const id = await made();
    const kept = [{ limit: '20.00' }, { action: 'report' }, { alerts: [1] }, { models: ['a'] }, { enabled: false }];
    for (const changes of kept) await patch(id, changes);
    expect(await epochOf(id)).toBe(0);
    const anew = [{ period: 'day' }, { timezone: 'Asia/Kolkata' }, { per: 'key' }, { unit: 'tokens', limit: 5 }];
    for (const [i, changes] of anew.entries()) {
      expect(outcome(await patch(id, changes))).toBe('200');
      expect(await epochOf(id)).toBe(i + 1);
    }
    expect(failed(await patch(id, { unit: 'money' }))).toEqual(['422 invalid_field', '/limit']);
    expect(outcome(await patch(id, { unit: 'requests' }))).toBe('200');
  });

  test.each([
    ['a lower limit', { alerts: [0.8, 1] }, { limit: '5.00' }, 5],
    ['a further alert', { limit: '5.00' }, { alerts: [0.8, 1] }, 5],
    ['the end of a pause', { limit: '5.00', alerts: [0.8, 1], enabled: false }, { enabled: true }, 5],
  ])(
    'notes the alerts that %s makes due, without another booking and each once',
    async (_, members, changes, limit) => {
      const id = await made(members);
      const period = `${id} ${month()}#0`;
      await spend(period, 4_500_000_000);
      await spend(`${id} 2026-01#0`, 9_000_000_000);
      expect(outcome(await patch(id, changes))).toBe('200');
      expect(await alertsOf(id)).toEqual([[period, 0.8, 4_500_000_000, limit * 1e9]]);
      expect(outcome(await patch(id, { limit: '4.00' }))).toBe('200');
      expect(await alertsOf(id)).toEqual([
        [period, 0.8, 4_500_000_000, limit * 1e9],
        [period, 1, 4_500_000_000, 4e9],
      ]);
    },
  );

  test('notes the alerts that a lower limit makes due for each caller with its own amount, and none of a new amount', async () => {
    const id = await made({ per: 'key', unit: 'requests', limit: 100, period: 'total', alerts: [1] });
    for (const [i, spent] of [9, 10, 11].entries()) await spend(`${id}/key_${i} total#0`, spent);
    expect(outcome(await patch(id, { limit: 10 }))).toBe('200');
    const due = [1, 2].map((i) => [`${id}/key_${i} total#0`, 1, 9 + i, 10]);
    expect(await alertsOf(id)).toEqual(due);
    expect(outcome(await patch(id, { limit: 1, per: 'user' }))).toBe('200');
    expect(await alertsOf(id)).toEqual(due);
  });

  test('is reset with a reason that the audit log keeps with the amount that was spent, and begins a new amount', async () => {
    const id = await made();
    await spend(`${id} ${month()}#0`, 7_000_000_000);
    expect(failed(await reset(id, ' '))).toEqual(['422 invalid_field', '/reason']);
    expect(outcome(await reset(id, 'a runaway test'))).toBe('200');
    expect((await get(id)).json['state']).toMatchObject({ spent: '0.00', remaining: '10.00' });
    const [row] = (await h.audit('budget.reset')).filter(({ target_id }) => target_id === id);
    expect(row).toMatchObject({
      tenant_id: ACME,
      actor_id: boss.id,
      before: { spent: '7.00' },
      after: { name, reason: 'a runaway test' },
    });
  });

  test('shows the keys, users and models that used most of what it counts', async () => {
    const [one, two] = [await key({ metadata: own().metadata }), await key({ metadata: own().metadata })];
    const other = await key();
    await use({ key: one, model: 'gpt-4', cost: 3_000_000_000 });
    await use({ key: one, model: 'gpt-5', cost: 1_000_000_000 });
    await use({ key: two, model: 'gpt-4', cost: 2_000_000_000 });
    await use({ key: two, model: 'gpt_4', cost: 9_000_000_000 });
    await use({ key: other, model: 'gpt-4', cost: 5_000_000_000 });
    const id = await made({ models: ['gpt-*'] });
    expect((await get(id)).json['state']).toMatchObject({
      by_key: [
        { key_id: one, user_id: null, spent: '4.00' },
        { key_id: two, user_id: null, spent: '2.00' },
      ],
      by_model: [
        { model: 'gpt-4', spent: '5.00' },
        { model: 'gpt-5', spent: '1.00' },
      ],
    });
  });

  test('shows sums that are larger than an exact number, of keys and of models', async () => {
    const keys = [await key({ metadata: own().metadata }), await key({ metadata: own().metadata })];
    for (const one of keys) {
      await use({ key: one, model: 'gpt-4', cost: 5e15 });
      await use({ key: one, model: 'gpt-5', cost: 5e15 });
    }
    const spent = '10000000.00';
    expect((await get(await made())).json['state']).toMatchObject({
      by_key: expect.arrayContaining(keys.map((key_id) => expect.objectContaining({ key_id, spent }))),
      by_model: ['gpt-4', 'gpt-5'].map((model) => ({ model, spent })),
    });
  });

  test('shows no sums of more than 200,000 rows of usage, except of its own keys or users, and has no preview then', async () => {
    const id = unique('crowd');
    await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id, name: id } });
    const { token } = await h.person(id, ['tenant-admin']);
    const member = await h.person(id, []);
    // The server's own statements end after 2 s. The triggers that sum the rows would take half a minute.
    const patient = h.db.reopen({ ...PATIENT, poolMax: 1 });
    await patient.knex.transaction(async (trx) => {
      await trx.raw('set local session_replication_role = replica');
      await trx.raw(
        `insert into usage_daily (tenant_id, day, model, key_id, user_id, requests)
         select ?, cast(date_trunc('month', current_date) - interval '1 month' as date), 'm', 'key_' || lpad(cast(n as text), 26, '0'),
           case when n = 1 then ? else '' end, 1
         from generate_series(1, 200001) n`,
        [id, member.id],
      );
    });
    const budget = (appliesTo: object) => ({
      name: unique('sums'),
      unit: 'requests',
      limit: 5,
      period: 'total',
      applies_to: appliesTo,
    });
    const sums = async (appliesTo: object) => {
      const { json } = await h.api('POST', BUDGETS, { as: token, body: budget(appliesTo) });
      await h.db.knex('budgets').where({ id: json['id'] }).update({ created_at: '2020-01-01' });
      return (await get(text(json, 'id'), token)).json['state'];
    };
    const preview = (appliesTo: object) => h.api('POST', `${BUDGETS}/preview`, { as: token, body: budget(appliesTo) });
    expect(await sums({ tenant: true })).not.toHaveProperty('by_key');
    expect(await sums({ users: [member.id] })).toMatchObject({ by_key: [{ user_id: member.id, spent: 1 }] });
    expect(failed(await preview({ tenant: true }))).toEqual(['422 invalid_field', '/applies_to']);
    expect((await preview({ users: [member.id] })).json).toMatchObject({ periods: [{ spent: 1 }] });
    await patient.knex.transaction(async (trx) => {
      await trx.raw('set local session_replication_role = replica');
      await trx('usage_daily').where({ tenant_id: id }).delete();
    });
    await patient.close();
  });

  test('with an amount for each key shows what is left for those that used most', async () => {
    const one = await key({ metadata: own().metadata });
    await use({ key: one, tokens: 60 });
    const id = await made({ unit: 'tokens', limit: 100, per: 'key', period: 'day' });
    await spend(`${id}/${one} ${day()}#0`, 60, 10);
    expect((await get(id)).json['state']).toMatchObject({
      spent: null,
      remaining: null,
      callers: [{ id: one, spent: 60, reserved: 10, remaining: 30 }],
    });
  });

  test('of a key, a user and a role that were deleted stays, is shown as it is and can be changed', async () => {
    const user = (await h.person(ACME, [])).id;
    const role = `role-${n}`;
    await h.api('POST', '/v1/iam/roles', { as: boss.token, body: { name: role, permissions: [] } });
    const ids = [
      await made({ name: `${name}-a`, applies_to: { users: [user] } }),
      await made({ name: `${name}-b`, applies_to: { roles: [role] } }),
    ];
    expect(outcome(await h.api('DELETE', `/v1/iam/users/${user}`, { as: boss.token }))).toBe('204');
    expect(outcome(await h.api('DELETE', `/v1/iam/roles/${role}`, { as: boss.token }))).toBe('204');
    expect((await get(ids[0] ?? '')).json['applies_to']).toEqual({ users: [user] });
    expect((await get(ids[1] ?? '')).json['applies_to']).toEqual({ roles: [role] });
    for (const id of ids) expect(outcome(await patch(id, { limit: '11.00' }))).toBe('200');
    expect(failed(await patch(ids[1] ?? '', { applies_to: { users: [user] } }))).toEqual([
      '422 invalid_field',
      '/applies_to/users/0',
    ]);
  });
});

describe('the rights', () => {
  test('to write a budget are admin:budgets, and to read one usage:read', async () => {
    const id = await made();
    await h.api('POST', '/v1/iam/roles', {
      as: boss.token,
      body: { name: 'budgeter', permissions: ['admin:budgets'] },
    });
    const writer = (await h.person(ACME, ['budgeter'])).token;
    const reader = (await h.person(ACME, ['auditor'])).token;
    expect(outcome(await patch(id, { limit: '3.00' }, writer))).toBe('200');
    expect(outcome(await get(id, writer))).toBe('403 insufficient_permission');
    expect(outcome(await get(id, reader))).toBe('200');
    expect(outcome(await patch(id, { limit: '3.00' }, reader))).toBe('403 insufficient_permission');
  });

  test('of another tenant reach no budget of this one', async () => {
    const id = await made();
    expect(outcome(await get(id, theirs.token))).toBe('404 not_found');
    expect(outcome(await patch(id, { limit: '0.00' }, theirs.token))).toBe('404 not_found');
    const foreign = await key();
    expect(failed(await create({ applies_to: { keys: [foreign] } }, theirs.token))).toEqual([
      '422 invalid_field',
      '/applies_to/keys/0',
    ]);
  });
});
