/** Lists of tenants against a naive twin, on random filters and page sizes. */

import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  countTenants,
  listTenants,
  type TenantFilter,
  tenantsByText,
  tenantsInOrder,
} from '../../src/iam/tenants/list-queries.ts';
import { hideValuesFromPlanner, type NamedQuery, runNamedQuery } from '../../src/store/prepared.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { runs } from '../support/properties.ts';

/** Texts that share parts, cross cases and scripts, and hold every character that means something to a query. */
const NAMES = [
  'Acme',
  'ACME Labs',
  "Miles O'Hara",
  'Back\\slash',
  'x & y | !z:*',
  'Zoë Weiß',
  '李雷',
  '%_%',
  '(<->)',
  'é\u0001t',
];
const WORDS = ['acme', 'globex', 'north-west', 'a1'];

const TENANTS = Array.from({ length: 240 }, (_, n) => ({
  id: `${WORDS[n % WORDS.length]}-${(n * 37) % 240}`,
  name: NAMES[(n * 7) % NAMES.length] ?? '',
  status: n % 5 === 0 ? ('suspended' as const) : ('active' as const),
  deleted: n % 11 === 0,
}));

const EVERY = { after: undefined, take: 1000 };

let fresh: FreshDatabase;
beforeAll(async () => {
  fresh = await freshDatabase();
  await fresh.db.knex.batchInsert(
    'tenants',
    TENANTS.map(({ deleted, ...tenant }) => ({ ...tenant, deleted_at: deleted ? new Date() : null })),
  );
});
afterAll(() => fresh.close());

/** All pages of a list, joined. */
async function pages(size: number, filter: TenantFilter): Promise<readonly string[]> {
  const ids: string[] = [];
  for (let after: readonly string[] | undefined; ; ) {
    const rows = await listTenants(fresh.db.knex, filter, { after, take: size + 1 });
    const shown = rows.slice(0, size).map((row) => row.id);
    ids.push(...shown);
    const last = shown.at(-1);
    if (rows.length <= size || last === undefined) return ids;
    after = [last];
  }
}

/** Every deleted tenant is left out. */
function naive({ status, q = '' }: TenantFilter): readonly string[] {
  return TENANTS.filter((one) => !one.deleted && (status === undefined || one.status === status))
    .filter((one) => [one.id, one.name].some((text) => text.toLowerCase().includes(q.toLowerCase())))
    .map((one) => one.id)
    .toSorted((left, right) => (left < right ? -1 : 1));
}

const needles = fc.oneof(
  fc.constantFrom('acme', 'ME', "o'h", '\\', '&', ':*', 'ß', 'WEISS', '李', '%', '_', 'a', 'th-w', '-1', 'x-20', ' '),
  fc.constantFrom(...NAMES),
  fc.string({ minLength: 1, maxLength: 4 }).filter((text) => !text.includes('\0') && text.isWellFormed()),
);

test('the filters of tenants, alone and combined, list exactly the tenants that they describe, page by page by id', async () => {
  const filters = fc.record(
    { q: needles, status: fc.constantFrom('active' as const, 'suspended' as const) },
    { requiredKeys: [] },
  );
  await fc.assert(
    fc.asyncProperty(filters, fc.integer({ min: 1, max: 100 }), async (filter, size) => {
      const expected = naive(filter);
      expect(await pages(size, filter)).toEqual(expected);
      const count = (most: number) => countTenants(fresh.db.knex, filter, most);
      expect([await count(1000), await count(5)]).toEqual([expected.length, Math.min(5, expected.length)]);
      if (filter.q === undefined) return;
      const found = await runNamedQuery<{ id: string }>(fresh.db.knex, tenantsByText(filter, EVERY));
      const sorted = found.map((row) => row.id).toSorted((left, right) => (left < right ? -1 : 1));
      expect(sorted, 'by the index of text alone').toEqual(expected);
    }),
    { numRuns: runs(200) },
  );
});

test('a text that few tenants have is found behind thousands of other tenants, and indexes find tenants by text and by status', async () => {
  const patient = fresh.db.reopen({ poolMax: 1, queryTimeoutMs: 60_000 });
  const { knex } = patient;
  await knex.raw(
    `insert into tenants (id, name, status)
     select 'tn-' || lpad(i::text, 5, '0'), 'Filler ' || case when i % 1000 = 0 then 'rare ' else '' end || i,
       case when i % 1500 = 0 then 'suspended' else 'active' end
     from generate_series(1, 4500) i`,
  );
  await knex.raw('analyze tenants');
  const id = (i: number) => `tn-${String(i).padStart(5, '0')}`;
  expect(await pages(50, { q: 'filler rare' })).toEqual([1000, 2000, 3000, 4000].map(id));
  expect(await pages(1, { q: 'FILLER RARE' })).toEqual([1000, 2000, 3000, 4000].map(id));
  expect(await pages(50, { q: '-04321' })).toEqual([id(4321)]);
  expect(await pages(50, { q: 'filler 44' })).toHaveLength(111);
  expect(await pages(200, { q: 'filler' })).toHaveLength(4500);
  expect(await pages(50, { q: 'filler', status: 'suspended' })).toEqual([1500, 3000, 4500].map(id));
  expect(await pages(50, { q: 'filler rare', status: 'suspended' })).toEqual([id(3000)]);
  const planOf = async ({ sql, bindings }: NamedQuery) => {
    const { rows } = await knex.raw<{ rows: { 'QUERY PLAN': string }[] }>(
      `explain ${hideValuesFromPlanner({ sql, bindings })}`,
      bindings,
    );
    return rows.map((row) => row['QUERY PLAN']).join('\n');
  };
  expect(await planOf(tenantsByText({ q: 'rare' }, EVERY))).toContain('tenants_by_lexeme');
  expect(await planOf(tenantsInOrder({ status: 'suspended' }, { after: ['b'], take: 51 }))).toContain(
    'tenants_by_status',
  );
  await patient.close();
});
