/** `postern budget`: the operator manages budgets without a login. */

import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { postern } from '../setup/support.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';

vi.setConfig({ testTimeout: 120_000 });

let fresh: FreshDatabase;
beforeAll(async () => {
  fresh = await freshDatabase();
  await fresh.db.knex.raw(`insert into tenants (id, name) values ('acme', 'Acme'), ('globex', 'Globex')`);
  await fresh.db.knex.raw(
    `insert into budgets (id, tenant_id, name, unit, limit_amount, period, applies_to) values
       ('bud_' || repeat('0', 25) || '1', 'acme', 'shared', 'money', 5000000000, 'total', '{"tenant": true}'),
       ('bud_' || repeat('0', 25) || '2', 'globex', 'shared', 'tokens', 100, 'day', '{"tenant": true}'),
       ('bud_' || repeat('0', 25) || '3', 'globex', 'old', 'tokens', 100, 'day', '{"tenant": true}')`,
  );
  await fresh.db.knex.raw(
    `insert into token_budgets (tenant_id, period, spent) values ('acme', 'bud_' || repeat('0', 25) || '1 total#0', 1500000000)`,
  );
});
afterAll(() => fresh?.close());

it('list, create, update, reset and delete work by name, and by tenant where a name is not unique', async () => {
  const listed = await postern(fresh.url, ['budget', 'list']);
  expect(listed.stdout.split('\n')).toEqual([
    expect.stringMatching(/^globex\/old {2}100 tokens per day {2}0 spent; until /),
    'acme/shared  5.00 money per total  1.50 spent',
    expect.stringContaining('globex/shared'),
    '',
  ]);
  const made = '{"name": "new", "unit": "money", "limit": "2.50", "period": "month", "applies_to": {"tenant": true}}';
  const [ambiguous, created, malformed, updated, reset, removed] = await Promise.all([
    postern(fresh.url, ['budget', 'get', 'shared']),
    postern(fresh.url, ['budget', 'create', made, '--tenant', 'acme']),
    postern(fresh.url, ['budget', 'create', '{"name": "new"}', '--tenant', 'acme']),
    postern(fresh.url, ['budget', 'update', 'shared', '{"limit": 200}', '--tenant', 'globex']),
    postern(fresh.url, ['budget', 'reset', 'shared', '--tenant', 'acme', '--reason', 'a test']),
    postern(fresh.url, ['budget', 'delete', 'old']),
  ]);
  expect([ambiguous.code, ambiguous.stderr]).toEqual([1, expect.stringContaining('2 tenants have a budget shared')]);
  expect([created.code, JSON.parse(created.stdout)]).toMatchObject([0, { tenant_id: 'acme', limit: '2.50' }]);
  expect([malformed.code, malformed.stdout]).toEqual([2, '']);
  expect([updated.code, JSON.parse(updated.stdout)]).toMatchObject([0, { name: 'shared', limit: 200 }]);
  expect([reset.code, removed.code, removed.stdout]).toEqual([0, 0, 'Deleted: old.\n']);
  const { rows } = await fresh.db.knex.raw<{ rows: object[] }>(
    `select actor_type, tenant_id, action, after->>'reason' as reason from audit_log where target_type = 'budget' order by action`,
  );
  expect(rows).toEqual([
    { actor_type: 'system', tenant_id: 'acme', action: 'budget.create', reason: null },
    { actor_type: 'system', tenant_id: 'globex', action: 'budget.delete', reason: null },
    { actor_type: 'system', tenant_id: 'acme', action: 'budget.reset', reason: 'a test' },
    { actor_type: 'system', tenant_id: 'globex', action: 'budget.update', reason: null },
  ]);
});
