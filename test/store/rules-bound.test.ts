/** The bound on the rules of one tenant, as the database holds it for every way of writing them. */

import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { seedTenant } from './seed.ts';

let fresh: FreshDatabase;
beforeAll(async () => {
  fresh = await freshDatabase();
  await seedTenant(fresh.db, 'acme');
});
afterAll(() => fresh.close());
beforeEach(async () => {
  await fresh.db.knex('policies').delete();
  await fresh.db.knex('roles').delete();
});

const POLICY = { effect: 'deny', actions: ['*'], resources: ['*'], applies_to: 'roles' };
const BOUND = /rules_size|more than 1 MiB/;

/** Policies `p1` to `p<count>` of the tenant; null = global. */
async function policies(tenant: string | null, count: number): Promise<void> {
  await fresh.db
    .knex('policies')
    .insert(Array.from({ length: count }, (_none, n) => ({ ...POLICY, tenant_id: tenant, name: `p${n + 1}` })));
}

const attach = (roles: number) =>
  fresh.db.query({
    text: `insert into policy_roles select p.id, lpad(n::text, 60, 'r') from policies p cross join generate_series(1, ${roles}) n`,
  });

test('a policy and a role count at least 128 bytes and their names, however little they say', async () => {
  await policies('acme', 1);
  await fresh.db.knex('roles').insert({ tenant_id: 'acme', name: 'helper', permissions: [] });
  const rows = await fresh.db.query({
    text: 'select octets from policies union all select octets from roles order by 1',
  });
  expect(rows).toEqual([{ octets: 128 + 6 + 2 + 2 }, { octets: 128 + 2 + 3 + 3 + 2 }]);
});

test.each(['acme', null])(
  'attached roles count: 13 policies with 1,000 of them fit, 14 do not (tenant %s)',
  async (tenant) => {
    await policies(tenant, 13);
    await attach(1000);
    await fresh.db.knex('policies').delete();
    await policies(tenant, 14);
    await expect(attach(1000)).rejects.toThrow(BOUND);
  },
);

test('rules from before the bound may be changed as long as they do not grow', async () => {
  await policies('acme', 1);
  await fresh.db.query({ text: 'alter table policies disable trigger user' });
  const texts = Array.from({ length: 5000 }, (_none, n) => `models/${n}`.padEnd(400, 'x'));
  await fresh.db.knex('policies').update({ resources: texts, octets: 2_010_000 });
  await fresh.db.query({ text: 'alter table policies enable trigger user' });
  await fresh.db.knex('policies').update({ resources: texts.slice(1) });
  await expect(fresh.db.knex('policies').update({ resources: [...texts, 'models/one-more'] })).rejects.toThrow(BOUND);
});
