/**
 * The lists of budgets with the most that an installation of a thousand tenants may have: a thousand for each. Every
 * page, search and count is the statement of the list. BENCH_BUDGET_TENANTS makes the installation smaller.
 */

import { parseBudgetName, parseTenantId } from '../src/domain/ids.ts';
import type { BudgetFilter } from '../src/iam/budgets/entity.ts';
import { budgetsNamed, countBudgets, listBudgets, sizeOfBudgets } from '../src/iam/budgets/queries.ts';
import { MAX_COUNTED, MAX_PAGE_BYTES } from '../src/iam/list/list.ts';
import { openDatabase } from '../src/store/database.ts';
import type { TenantScope } from '../src/store/paging.ts';
import { openWorld } from './server-under-test.ts';
import { median, printTable, type Row, scratch, writeResult } from './stack.ts';

const TENANTS = Number(process.env['BENCH_BUDGET_TENANTS'] ?? 1000);
const EACH = 1000;
const TAKE = 201;
const RUNS = Number(process.env['BENCH_ROUNDS'] ?? 5);
/** The most time of one statement, in milliseconds. */
const MOST_MS = 50;

const FILTERS: readonly (readonly [name: string, filter: BudgetFilter])[] = [
  ['all', {}],
  ['unit', { unit: 'money' }],
  ['rare unit', { unit: 'requests' }],
  ['disabled (1 in 1000)', { enabled: false }],
  ['disabled and report (none)', { enabled: false, action: 'report' }],
  ['q that all have', { q: 'budget' }],
  ['q that 1 in 1000 has', { q: 'Equipo 77 ' }],
  ['q that one has', { q: `budget ${TENANTS - 1}-${EACH - 1}` }],
  ['q that none has', { q: 'nothing at all' }],
  ['q of two letters that none has', { q: 'qz' }],
  ['q and a filter', { q: 'budget 1', enabled: false }],
];

export async function budgetLists(): Promise<void> {
  await using world = await openWorld(process.env['BENCH_BUDGET_DATA'] ?? scratch(), async (client) => {
    if ((await client.query('select from budgets limit 1')).rows.length > 0) return;
    // The change feed is not measured.
    await client.query('set session_replication_role = replica');
    await client.query(
      `insert into tenants (id, name) select 'tenant-' || t, 'T' from generate_series(0, $1::int - 1) t`,
      [TENANTS],
    );
    await client.query(
      `insert into budgets (id, tenant_id, name, unit, limit_amount, period, applies_to, action, enabled)
       select 'bud_' || lpad(to_hex($2::int * t + i), 26, '0'), 'tenant-' || t, 'Equipo ' || i || ' budget ' || t || '-' || i,
         case when i = 3 then 'requests' when i % 2 = 0 then 'money' else 'tokens' end, 1000000, 'month',
         '{"metadata": {"team": "a"}}', 'block', i <> 5
       from generate_series(0, $1::int - 1) t, generate_series(0, $2::int - 1) i`,
      [TENANTS, EACH],
    );
    await client.query('reset session_replication_role');
    await client.query('vacuum (analyze) budgets');
  });
  const db = openDatabase({ url: world.url, queryTimeoutMs: 60_000 });
  const { knex } = db;
  const rows: Row[] = [];
  const measure = async (name: string, run: () => Promise<unknown>): Promise<void> => {
    await run();
    const times: number[] = [];
    for (let i = 0; i < RUNS; i++) {
      const startedMs = performance.now();
      await run();
      times.push(performance.now() - startedMs);
    }
    rows.push({ statement: name, 'median ms': median(times).toFixed(1), 'least ms': Math.min(...times).toFixed(1) });
  };
  const middle = parseTenantId(`tenant-${TENANTS / 2}`);
  const named = parseBudgetName('Equipo 5 budget 5-5');
  if (middle === undefined || named === undefined) throw new Error('the names of the benchmark are not valid');
  const scopes: readonly (readonly [string, TenantScope])[] = [
    ['one tenant', { kind: 'one', tenant: middle }],
    ['all tenants', { kind: 'every' }],
  ];
  for (const [whose, scope] of scopes) {
    for (const [name, filter] of FILTERS) {
      const page = { after: undefined, take: TAKE, maxBytes: MAX_PAGE_BYTES };
      await measure(`${whose}: ${name}`, () => listBudgets(knex, scope, filter, page));
      await measure(`${whose}: ${name}, count`, () => countBudgets(knex, scope, filter, MAX_COUNTED));
    }
    const deep = { after: ['Equipo 900', ''], take: TAKE, maxBytes: MAX_PAGE_BYTES };
    await measure(`${whose}: a later page`, () => listBudgets(knex, scope, {}, deep));
  }
  await measure('budgets of a name', () => budgetsNamed(knex, named));
  await measure('the size of a tenant', () => sizeOfBudgets(knex, middle));
  await db.close();
  printTable(`Lists of ${TENANTS * EACH} budgets, median of ${RUNS} runs`, rows);
  writeResult('budget-lists', { budgets: TENANTS * EACH, runs: RUNS, rows });
  const slow = rows.filter((row) => Number(row['least ms']) > MOST_MS);
  for (const { statement } of slow) console.log(`SLOW (more than ${MOST_MS} ms): ${statement}`);
  if (slow.length > 0) process.exitCode = 1;
}
